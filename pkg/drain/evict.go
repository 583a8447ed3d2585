package drain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// answer is what the API server said to an eviction.
type answer string

const (
	answerEvicted     answer = "evicted"
	answerGone        answer = "gone"        // no such pod
	answerConflict    answer = "conflict"    // another pod has the name, or the pod has just changed
	answerBudget      answer = "budget"      // a budget allows no disruption now
	answerTerminating answer = "terminating" // the namespace is being deleted
	answerForbidden   answer = "forbidden"   // by a role or by admission
	answerRefused     answer = "refused"     // by admission, with whichever status it likes
	answerServerError answer = "serverError" // permanent when budgets overlap, else passing
	answerBusy        answer = "busy"        // asked to come back later
	answerFailed      answer = "failed"      // anything else, such as a connection refused
)

// classify reads the error of an eviction or a deletion by its status, never by its text. A webhook
// may refuse with whichever code it likes: that the pod is gone or has changed is said of the pod alone.
func classify(err error, pod *corev1.Pod) (answer, time.Duration) {
	switch {
	case err == nil:
		return answerEvicted, 0
	case apierrors.IsNotFound(err) && about(err, pod):
		return answerGone, 0
	case apierrors.IsConflict(err) && about(err, pod):
		return answerConflict, 0
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		return answerBudget, retryAfter(err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return answerTerminating, 0
	case apierrors.IsForbidden(err):
		return answerForbidden, 0
	case apierrors.IsTooManyRequests(err):
		return answerBusy, retryAfter(err)
	}
	return classifyCode(err)
}

// classifyCode reads what has nothing but a code to go by.
func classifyCode(err error) (answer, time.Duration) {
	switch code := codeOf(err); {
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && (code == http.StatusNotFound || code == http.StatusConflict):
		return answerFailed, retryAfter(err) // of something on the way, not of the API server
	case code == http.StatusInternalServerError:
		return answerServerError, retryAfter(err)
	case code >= 400 && code < 500 && code != http.StatusUnauthorized && code != http.StatusRequestTimeout:
		return answerRefused, 0
	}
	return answerFailed, retryAfter(err)
}

// about says that the API server speaks of this pod, in its own words.
func about(err error, pod *corev1.Pod) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false
	}
	d := status.Status().Details
	// Pod is what it says of a precondition on the uid, and pods of everything else.
	return d != nil && d.Group == "" && (d.Kind == "pods" || d.Kind == "Pod") && d.Name == pod.Name
}

func codeOf(err error) int32 {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0
	}
	return status.Status().Code
}

func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// causeMessage is what the API server says of the budget, or the whole error.
func causeMessage(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			if c.Type == policyv1.DisruptionBudgetCause && c.Message != "" {
				return c.Message
			}
		}
	}
	return err.Error()
}

// evict asks for one eviction. The UID precondition keeps it from hitting a pod
// that has taken the name since. It bypasses the client's own retries: those would
// sleep through the very event that this package waits for.
func evict(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	uid := pod.UID
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	}
	var err error
	raw, ok := client.PolicyV1().RESTClient().(*rest.RESTClient)
	if !ok || raw == nil { // a client without transport, such as a recorded one
		err = client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
	} else {
		err = raw.Post().AbsPath("/api/v1").Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
			SubResource("eviction").MaxRetries(0).Body(eviction).Do(ctx).Error()
	}
	if err != nil {
		return fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// deletePod deletes past every budget, with the pod's own grace period. Only for ActionDelete.
func deletePod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	uid := pod.UID
	err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if answer, _ := classify(err, pod); answer == answerEvicted || answer == answerGone || answer == answerConflict {
		return nil
	}
	return fmt.Errorf("deleting pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// may asks whether the role of this client has a verb on pods: it tells a missing role from an admission's refusal.
func may(ctx context.Context, client kubernetes.Interface, verb, subresource, namespace string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Resource: "pods", Subresource: subresource},
	}}
	out, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking for the right to %s pods: %w", verb, err)
	}
	return out.Status.Allowed, nil
}
