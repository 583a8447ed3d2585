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

// foundWebhooks are those that pods of the node alone answer, by pod, and what of them could not be read.
type foundWebhooks struct {
	by     map[types.NamespacedName]*serving
	unread []string
}

func (f *foundWebhooks) miss(what string, err error) {
	if text := fmt.Sprintf("%s cannot be read (%v)", what, err); !slices.Contains(f.unread, text) {
		f.unread = append(f.unread, text)
	}
}

// readWebhooks finds the fail-closed webhooks that only pods of this node answer. What may
// not be read is left out, and told of: a drain does not depend on it.
func (s *survey) readWebhooks(ctx context.Context) foundWebhooks {
	out := foundWebhooks{by: map[types.NamespacedName]*serving{}}
	for _, w := range s.failClosed(ctx, &out) {
		pods, err := s.aloneAnswering(ctx, w.service)
		if err != nil {
			out.miss("who answers webhook "+w.String(), err)
		}
		for _, pod := range pods {
			if out.by[pod] == nil {
				out.by[pod] = &serving{namespaceLabels: s.labelsOf(ctx, pod.Namespace, &out)}
			}
			out.by[pod].hooks = append(out.by[pod].hooks, w)
		}
	}
	return out
}

// declared is what counts of a webhook of either kind.
type declared struct {
	configuration, name string
	policy              *admissionv1.FailurePolicyType
	client              admissionv1.WebhookClientConfig
	rules               []admissionv1.RuleWithOperations
	namespaces, objects *metav1.LabelSelector
	conditions          []admissionv1.MatchCondition
}

func (s *survey) failClosed(ctx context.Context, out *foundWebhooks) []webhook {
	var hooks []webhook
	for _, d := range s.declared(ctx, out) {
		w, err := d.failClosed()
		if err != nil {
			out.miss("webhook "+d.name+" ("+d.configuration+")", err)
		}
		if w != nil {
			hooks = append(hooks, *w)
		}
	}
	return hooks
}

// declared are the webhooks of both kinds.
func (s *survey) declared(ctx context.Context, out *foundWebhooks) []declared {
	var all []declared
	admission := s.client.AdmissionregistrationV1()
	validating, err := admission.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		out.miss("the ValidatingWebhookConfigurations", err)
		validating = &admissionv1.ValidatingWebhookConfigurationList{}
	}
	for _, c := range validating.Items {
		for _, w := range c.Webhooks {
			all = append(all, declared{"ValidatingWebhookConfiguration " + c.Name, w.Name, w.FailurePolicy, w.ClientConfig, w.Rules,
				w.NamespaceSelector, w.ObjectSelector, w.MatchConditions})
		}
	}
	mutating, err := admission.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		out.miss("the MutatingWebhookConfigurations", err)
		mutating = &admissionv1.MutatingWebhookConfigurationList{}
	}
	for _, c := range mutating.Items {
		for _, w := range c.Webhooks {
			all = append(all, declared{"MutatingWebhookConfiguration " + c.Name, w.Name, w.FailurePolicy, w.ClientConfig, w.Rules,
				w.NamespaceSelector, w.ObjectSelector, w.MatchConditions})
		}
	}
	return all
}

// failClosed is the webhook where no pod is made while nobody answers it; nil for any other.
func (d declared) failClosed() (*webhook, error) {
	if d.policy != nil && *d.policy == admissionv1.Ignore || d.client.Service == nil || !slices.ContainsFunc(d.rules, aboutNewPods) {
		return nil, nil //nolint:nilnil // it is none, and nothing is wrong with it
	}
	w := &webhook{name: d.name, configuration: d.configuration, conditional: len(d.conditions) > 0,
		service: types.NamespacedName{Namespace: d.client.Service.Namespace, Name: d.client.Service.Name}}
	var err error
	if w.namespaces, err = metav1.LabelSelectorAsSelector(orEverything(d.namespaces)); err != nil {
		return nil, fmt.Errorf("reading its namespaceSelector: %w", err)
	}
	if w.objects, err = metav1.LabelSelectorAsSelector(orEverything(d.objects)); err != nil {
		return nil, fmt.Errorf("reading its objectSelector: %w", err)
	}
	return w, nil
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
func (s *survey) aloneAnswering(ctx context.Context, service types.NamespacedName) ([]types.NamespacedName, error) {
	list, err := s.client.DiscoveryV1().EndpointSlices(service.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the EndpointSlices of service %s: %w", service, err)
	}
	var out []types.NamespacedName
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			if e.NodeName == nil || *e.NodeName != s.node {
				return nil, nil
			}
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				out = append(out, types.NamespacedName{Namespace: e.TargetRef.Namespace, Name: e.TargetRef.Name})
			}
		}
	}
	return out, nil
}

// labelsOf a namespace; where they may not be read, the one that each has.
func (s *survey) labelsOf(ctx context.Context, namespace string, out *foundWebhooks) labels.Set {
	n, err := s.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		out.miss("the labels of namespace "+namespace, err)
		return labels.Set{corev1.LabelMetadataName: namespace}
	}
	return n.Labels
}
