package drain

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Scene is a node with what bears on its drain, in objects: for a forecast that asks no cluster.
type Scene struct {
	Node *corev1.Node
	// Pods of the node.
	Pods []*corev1.Pod
	// Budgets that may hold them, in the order of their names.
	Budgets []*policyv1.PodDisruptionBudget
	// Members are all pods of a budget, on any node.
	Members func(*policyv1.PodDisruptionBudget) []*corev1.Pod
	Now     time.Time
	Options Options
}

// Forecast is what a drain of the node would meet, by the very functions that judge it in a
// cluster. Each DaemonSet that has a pod counts as there.
func (s Scene) Forecast(ctx context.Context) (Forecast, error) {
	d := &Drainer{client: sceneClient{}, opts: s.Options.withDefaults(), pace: defaultPace}
	r := &run{Drainer: d, node: s.Node.Name}
	r.opts.Progress = func(Event) {}
	r.judgeNode(s.Node)
	in := scene{
		node: s.Node.Name, now: s.Now, opts: d.opts, unreachable: r.health, members: s.Members,
		unread: func(*policyv1.PodDisruptionBudget) error { return nil },
	}
	selector := newSelector(d.client, d.opts)
	for _, pod := range s.Pods {
		j := judged{pod: pod, budgets: s.matching(pod)}
		var err error
		if j.verdict, j.reason, j.message, err = selector.judge(ctx, pod); err != nil {
			return Forecast{}, fmt.Errorf("judging pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		in.pods = append(in.pods, j)
	}
	return foresee(in), nil
}

// Hopeless is how long a drain goes on that nothing but a person's change could end.
func Hopeless() time.Duration { return defaultPace.hopeless }

func (s Scene) matching(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, b := range s.Budgets {
		if b.Namespace != pod.Namespace {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			out = append(out, b)
		}
	}
	return out
}

// sceneClient answers kubectl's filters: pods come with the scene, and DaemonSets are there.
type sceneClient struct{ kubernetes.Interface }

func (sceneClient) CoreV1() corev1client.CoreV1Interface { return sceneCore{} }
func (sceneClient) AppsV1() appsv1client.AppsV1Interface { return sceneApps{} }

type sceneCore struct{ corev1client.CoreV1Interface }

func (sceneCore) Pods(string) corev1client.PodInterface { return nil }

type sceneApps struct{ appsv1client.AppsV1Interface }

func (sceneApps) DaemonSets(string) appsv1client.DaemonSetInterface { return sceneDaemonSets{} }

type sceneDaemonSets struct {
	appsv1client.DaemonSetInterface
}

func (sceneDaemonSets) Get(context.Context, string, metav1.GetOptions) (*appsv1.DaemonSet, error) {
	return &appsv1.DaemonSet{}, nil
}
