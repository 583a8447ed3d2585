package drain_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/refit-dev/refit/pkg/drain"
)

// hook is a webhook that is asked about new pods, answered by service shop/hook.
func hook(edit func(*admissionv1.ValidatingWebhook)) *admissionv1.ValidatingWebhookConfiguration {
	w := admissionv1.ValidatingWebhook{
		Name:         "pods.policy.example",
		ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "shop", Name: "hook"}},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}},
	}
	edit(&w)
	return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "policy"}, Webhooks: []admissionv1.ValidatingWebhook{w}}
}

func answeredBy(endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}}, Endpoints: endpoints,
	}
}

func endpoint(pod, node string, ready bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: pod}}
}

func TestAForecastKnowsTheWebhooksThatOnlyTheNodeAnswers(t *testing.T) {
	ignore := admissionv1.Ignore
	asIs := func(*admissionv1.ValidatingWebhook) {}
	elsewhere := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"shop"}}}}
	for name, tc := range map[string]struct {
		edit      func(*admissionv1.ValidatingWebhook)
		endpoints []discoveryv1.Endpoint
		outlook   drain.Outlook
		warning   string
	}{
		"asked about its own pods":     {edit: asIs, endpoints: []discoveryv1.Endpoint{endpoint("a", node, true)}, outlook: drain.OutlookNever},
		"another node answers as well": {edit: asIs, endpoints: []discoveryv1.Endpoint{endpoint("a", node, true), endpoint("b", "w2", true)}, outlook: drain.OutlookNow},
		"the other node is not ready":  {edit: asIs, endpoints: []discoveryv1.Endpoint{endpoint("a", node, true), endpoint("b", "w2", false)}, outlook: drain.OutlookNever},
		"nobody is ready":              {edit: asIs, endpoints: []discoveryv1.Endpoint{endpoint("a", node, false)}, outlook: drain.OutlookNow},
		"it may be left out":           {edit: func(w *admissionv1.ValidatingWebhook) { w.FailurePolicy = &ignore }, endpoints: []discoveryv1.Endpoint{endpoint("a", node, true)}, outlook: drain.OutlookNow},
		"it is asked about other namespaces only": {edit: func(w *admissionv1.ValidatingWebhook) { w.NamespaceSelector = elsewhere },
			endpoints: []discoveryv1.Endpoint{endpoint("a", node, true)}, outlook: drain.OutlookNow, warning: "alone answers the fail-closed webhook pods.policy.example (ValidatingWebhookConfiguration policy)"},
		"its conditions are not looked into": {edit: func(w *admissionv1.ValidatingWebhook) {
			w.MatchConditions = []admissionv1.MatchCondition{{Name: "some", Expression: "true"}}
		},
			endpoints: []discoveryv1.Endpoint{endpoint("a", node, true)}, outlook: drain.OutlookNow, warning: "alone answers"},
		"it is asked about something else": {edit: func(w *admissionv1.ValidatingWebhook) { w.Rules[0].Resources = []string{"configmaps"} },
			endpoints: []discoveryv1.Endpoint{endpoint("a", node, true)}, outlook: drain.OutlookNow},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{pod("a"), hook(tc.edit), answeredBy(tc.endpoints...),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{corev1.LabelMetadataName: "shop"}}}}
			c := newCluster(t, objects...)
			f, err := drain.NewCluster(c).Drainer(drain.Options{}).Forecast(t.Context(), node)
			require.NoError(t, err)
			require.Len(t, f.Pods, 1)
			assert.Equal(t, tc.outlook, f.Pods[0].Outlook, f.Pods[0].Message)
			assert.Contains(t, f.Pods[0].Warning, tc.warning)
			if tc.outlook == drain.OutlookNever {
				assert.Equal(t, drain.ReasonFailClosedWebhook, f.Reason)
				assert.Contains(t, f.Message, "leave namespace shop out of the webhook's namespaceSelector")
			}
			if tc.warning == "" {
				assert.Empty(t, f.Pods[0].Warning)
			}
		})
	}
}

func TestAForecastSaysWhatItCouldNotReadOfTheWebhooks(t *testing.T) {
	asIs := func(*admissionv1.ValidatingWebhook) {}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{corev1.LabelMetadataName: "shop"}}}
	for name, tc := range map[string]struct {
		edit           func(*admissionv1.ValidatingWebhook)
		verb, resource string
		unknown        string
		outlook        drain.Outlook
	}{
		"the validating ones": {asIs, "list", "validatingwebhookconfigurations", "the ValidatingWebhookConfigurations cannot be read", drain.OutlookNow},
		"the mutating ones":   {asIs, "list", "mutatingwebhookconfigurations", "the MutatingWebhookConfigurations cannot be read", drain.OutlookNever},
		"who answers":         {asIs, "list", "endpointslices", "who answers webhook pods.policy.example (ValidatingWebhookConfiguration policy) cannot be read", drain.OutlookNow},
		"the namespace":       {asIs, "get", "namespaces", "the labels of namespace shop cannot be read", drain.OutlookNever},
		"a selector": {func(w *admissionv1.ValidatingWebhook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
		}, "", "", "webhook pods.policy.example (ValidatingWebhookConfiguration policy) cannot be read (reading its objectSelector", drain.OutlookNow},
		"nothing": {asIs, "", "", "", drain.OutlookNever},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod("a"), hook(tc.edit), answeredBy(endpoint("a", node, true)), shop)
			if tc.verb != "" {
				c.PrependReactor(tc.verb, tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: tc.resource}, "", errors.New("no role allows it"))
				})
			}
			f, err := drain.NewCluster(c).Drainer(drain.Options{}).Forecast(t.Context(), node)
			require.NoError(t, err)
			assert.Equal(t, tc.outlook, f.Outlook, f.Message)
			if tc.unknown == "" {
				assert.Empty(t, f.Unknown)
				return
			}
			require.Len(t, f.Unknown, 1)
			assert.Contains(t, f.Unknown[0], tc.unknown)
		})
	}
}
