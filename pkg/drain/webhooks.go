package drain

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// webhook is a fail-closed admission webhook that is asked about new pods: while nobody
// answers it, no pod that it is asked about is made.
// https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/
type webhook struct {
	name, configuration string
	service             types.NamespacedName
	namespaces, objects labels.Selector
	// conditional: matchConditions narrow it further, in a way that is not looked into.
	conditional bool
}

// serving is what a pod does for webhooks that no pod of another node answers.
type serving struct {
	hooks           []webhook
	namespaceLabels labels.Set
}

// String is the webhook for people.
func (w webhook) String() string { return w.name + " (" + w.configuration + ")" }

// asksAbout says that the webhook would be asked about a pod like this one.
func (w webhook) asksAbout(pod *corev1.Pod, namespace labels.Set) bool {
	return !w.conditional && w.namespaces.Matches(namespace) && w.objects.Matches(labels.Set(pod.Labels))
}

// closing is what comes of the webhooks that the pod alone answers: a webhook that is asked
// about its own pods keeps them from being made anew, for good; of any other what it guards waits a while.
func (f *foresight) closing(pod *corev1.Pod) (never, warning string) {
	of := f.webhooks[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	if of == nil {
		return "", ""
	}
	for _, w := range of.hooks {
		if w.asksAbout(pod, of.namespaceLabels) {
			return fmt.Sprintf("is answered by no pod of another node as the fail-closed webhook %s, which is also asked about its own pods: once it is evicted, nothing can be made in its place; "+
				"run a second replica on another node, leave namespace %s out of the webhook's namespaceSelector, or set its failurePolicy to Ignore", w, pod.Namespace), ""
		}
		warning = fmt.Sprintf("alone answers the fail-closed webhook %s: until it is ready elsewhere, pods that the webhook is asked about cannot be made; a second replica on another node would answer meanwhile", w)
	}
	return "", warning
}

// readWebhooks finds the fail-closed webhooks that only pods of this node answer. What may
// not be read is left out: a drain does not depend on it.
func (s *survey) readWebhooks(ctx context.Context) map[types.NamespacedName]*serving {
	out := map[types.NamespacedName]*serving{}
	for _, w := range s.failClosed(ctx) {
		for _, pod := range s.aloneAnswering(ctx, w.service) {
			if out[pod] == nil {
				out[pod] = &serving{namespaceLabels: s.labelsOf(ctx, pod.Namespace)}
			}
			out[pod].hooks = append(out[pod].hooks, w)
		}
	}
	return out
}

func (s *survey) failClosed(ctx context.Context) []webhook {
	var out []webhook
	add := func(kind, configuration, name string, policy *admissionv1.FailurePolicyType, client admissionv1.WebhookClientConfig,
		rules []admissionv1.RuleWithOperations, namespaces, objects *metav1.LabelSelector, conditional bool,
	) {
		if policy != nil && *policy == admissionv1.Ignore || client.Service == nil || !slices.ContainsFunc(rules, aboutNewPods) {
			return
		}
		w := webhook{name: name, configuration: kind + " " + configuration, conditional: conditional,
			service: types.NamespacedName{Namespace: client.Service.Namespace, Name: client.Service.Name}}
		var err1, err2 error
		w.namespaces, err1 = metav1.LabelSelectorAsSelector(orEverything(namespaces))
		w.objects, err2 = metav1.LabelSelectorAsSelector(orEverything(objects))
		if err1 == nil && err2 == nil {
			out = append(out, w)
		}
	}
	admission := s.client.AdmissionregistrationV1()
	if list, err := admission.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{}); err == nil {
		for _, c := range list.Items {
			for _, w := range c.Webhooks {
				add("ValidatingWebhookConfiguration", c.Name, w.Name, w.FailurePolicy, w.ClientConfig, w.Rules, w.NamespaceSelector, w.ObjectSelector, len(w.MatchConditions) > 0)
			}
		}
	}
	if list, err := admission.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{}); err == nil {
		for _, c := range list.Items {
			for _, w := range c.Webhooks {
				add("MutatingWebhookConfiguration", c.Name, w.Name, w.FailurePolicy, w.ClientConfig, w.Rules, w.NamespaceSelector, w.ObjectSelector, len(w.MatchConditions) > 0)
			}
		}
	}
	return out
}

// orEverything: a selector that is not set selects everything.
func orEverything(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return &metav1.LabelSelector{}
	}
	return s
}

func aboutNewPods(r admissionv1.RuleWithOperations) bool {
	has := func(list []string, one string) bool { return slices.Contains(list, one) || slices.Contains(list, "*") }
	operation := slices.Contains(r.Operations, admissionv1.Create) || slices.Contains(r.Operations, admissionv1.OperationAll)
	return operation && has(r.APIGroups, "") && has(r.APIVersions, "v1") && (has(r.Resources, "pods") || slices.Contains(r.Resources, "*/*")) &&
		(r.Scope == nil || *r.Scope != admissionv1.ClusterScope)
}

// aloneAnswering are the pods behind a service where all that are ready are on this node.
func (s *survey) aloneAnswering(ctx context.Context, service types.NamespacedName) []types.NamespacedName {
	list, err := s.client.DiscoveryV1().EndpointSlices(service.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name})
	if err != nil {
		return nil
	}
	var out []types.NamespacedName
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			if e.NodeName == nil || *e.NodeName != s.node {
				return nil
			}
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				out = append(out, types.NamespacedName{Namespace: e.TargetRef.Namespace, Name: e.TargetRef.Name})
			}
		}
	}
	return out
}

func (s *survey) labelsOf(ctx context.Context, namespace string) labels.Set {
	n, err := s.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return labels.Set{corev1.LabelMetadataName: namespace}
	}
	return n.Labels
}
