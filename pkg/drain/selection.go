package drain

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	kubectldrain "k8s.io/kubectl/pkg/drain"
)

// verdict says what a drain does with a pod.
type verdict string

const (
	verdictEvict  verdict = "evict"
	verdictWait   verdict = "wait"   // it leaves already
	verdictIgnore verdict = "ignore" // it stays, or is finished
	verdictRefuse verdict = "refuse" // the policy forbids to evict it
)

// selector judges pods with kubectl's drain filters. It asks for each DaemonSet once.
type selector struct {
	client     kubernetes.Interface
	opts       Options
	daemonSets map[types.NamespacedName]error
}

func newSelector(client kubernetes.Interface, opts Options) *selector {
	return &selector{client: client, opts: opts, daemonSets: map[types.NamespacedName]error{}}
}

// judge returns the verdict and, for a refusal, its reason and message. An error
// means that the question could not be answered now.
func (s *selector) judge(ctx context.Context, pod *corev1.Pod) (verdict, string, string, error) {
	if finished(pod) || s.opts.IsOwnPod(pod) {
		return verdictIgnore, "", "", nil
	}
	s.forgetFaults()
	helper := &kubectldrain.Helper{
		Ctx:                 ctx,
		Client:              onePodClient{s.client, pod, s},
		Force:               s.opts.UnmanagedPods == ActionEvict,
		DeleteEmptyDirData:  s.opts.EmptyDir == ActionEvict,
		IgnoreAllDaemonSets: true,
	}
	list, errs := helper.GetPodsForDeletion(pod.Spec.NodeName)
	switch {
	case pod.DeletionTimestamp != nil && (len(errs) > 0 || len(list.Pods()) > 0):
		return verdictWait, "", "", nil
	case len(errs) > 0:
		return s.refusal(ctx, pod)
	case len(list.Pods()) == 0:
		return verdictIgnore, "", "", nil
	}
	return verdictEvict, "", "", nil
}

// refusal finds which policy made kubectl's filters refuse the pod, by fact and not by their text.
func (s *selector) refusal(ctx context.Context, pod *corev1.Pod) (verdict, string, string, error) {
	if ref := metav1.GetControllerOf(pod); ref != nil && ref.Kind == "DaemonSet" {
		err := s.daemonSet(ctx, pod.Namespace, ref.Name)
		switch {
		case apierrors.IsForbidden(err):
			return verdictRefuse, ReasonMissingPermission, "may not get daemonsets.apps, which tells pods that stay from pods that leave: allow it in the ClusterRole", nil
		case apierrors.IsNotFound(err):
			return verdictRefuse, ReasonUnmanagedPods, fmt.Sprintf("its DaemonSet %s is gone, so nothing would recreate it: delete the pod, or set drain.unmanagedPods to Evict", ref.Name), nil
		case err != nil:
			return "", "", "", err
		}
	}
	if s.opts.EmptyDir != ActionEvict && hasEmptyDir(pod) {
		return verdictRefuse, ReasonEmptyDirPods, "has emptyDir data that would be lost: move it, or set drain.emptyDir to Evict", nil
	}
	return verdictRefuse, ReasonUnmanagedPods, "has no controller, so nothing would recreate it: delete the pod, or set drain.unmanagedPods to Evict", nil
}

func (s *selector) daemonSet(ctx context.Context, namespace, name string) error {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	err, known := s.daemonSets[key]
	if known {
		return err
	}
	if _, err = s.client.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		err = fmt.Errorf("getting DaemonSet %s: %w", key, err)
	}
	s.daemonSets[key] = err
	return err
}

// forgetFaults makes room for a new answer. Within one judgement an answer stays the same.
func (s *selector) forgetFaults() {
	for key, err := range s.daemonSets {
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			delete(s.daemonSets, key)
		}
	}
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func hasEmptyDir(pod *corev1.Pod) bool {
	for _, v := range pod.Spec.Volumes {
		if v.EmptyDir != nil {
			return true
		}
	}
	return false
}

// onePodClient lets kubectl's filters judge a pod that the watch has already
// delivered: its pod list is that pod, its DaemonSets are asked for once.
type onePodClient struct {
	kubernetes.Interface
	pod      *corev1.Pod
	selector *selector
}

func (c onePodClient) CoreV1() corev1client.CoreV1Interface {
	return onePodCore{c.Interface.CoreV1(), c.pod}
}

func (c onePodClient) AppsV1() appsv1client.AppsV1Interface {
	return cachedApps{c.Interface.AppsV1(), c.selector}
}

type onePodCore struct {
	corev1client.CoreV1Interface
	pod *corev1.Pod
}

func (c onePodCore) Pods(namespace string) corev1client.PodInterface {
	return onePodList{c.CoreV1Interface.Pods(namespace), c.pod}
}

type onePodList struct {
	corev1client.PodInterface
	pod *corev1.Pod
}

func (l onePodList) List(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
	return &corev1.PodList{Items: []corev1.Pod{*l.pod}}, nil
}

type cachedApps struct {
	appsv1client.AppsV1Interface
	selector *selector
}

func (a cachedApps) DaemonSets(namespace string) appsv1client.DaemonSetInterface {
	return cachedDaemonSets{a.AppsV1Interface.DaemonSets(namespace), a.selector, namespace}
}

type cachedDaemonSets struct {
	appsv1client.DaemonSetInterface
	selector  *selector
	namespace string
}

func (d cachedDaemonSets) Get(ctx context.Context, name string, _ metav1.GetOptions) (*appsv1.DaemonSet, error) {
	if err := d.selector.daemonSet(ctx, d.namespace, name); err != nil {
		return nil, err
	}
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name}}, nil
}
