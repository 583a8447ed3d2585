package diagnose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/status"
)

// coordinatorLabels are those of the coordinator's pods.
var coordinatorLabels = client.MatchingLabels{"app.kubernetes.io/name": "refit-coordinator"}

// mostPods whose logs are read.
const mostPods = 10

// Source is where it is read from.
type Source struct {
	Client client.Reader
	Kube   kubernetes.Interface
	// LogBytes of each container are read at most, from the end, and as many of the one before it.
	LogBytes int64
}

// Collect reads all that there is. What cannot be read is noted, and holds up nothing else.
func (a *Archive) Collect(ctx context.Context, s Source) {
	if v, err := s.Kube.Discovery().ServerVersion(); err != nil {
		a.Miss("the API server's version", err)
	} else {
		a.Summary.Server = v.GitVersion
	}
	here := client.InNamespace(a.Summary.Namespace)
	a.list(ctx, s, "machines", &v1alpha1.MachineList{}, a.wanted, here)
	a.list(ctx, s, "machinedeployments", &v1alpha1.MachineDeploymentList{}, all, here)
	a.list(ctx, s, "machinedisruptionbudgets", &v1alpha1.MachineDisruptionBudgetList{}, all, here)
	a.list(ctx, s, "ledgers", &v1alpha1.LedgerList{}, all, here)
	a.list(ctx, s, "controllerrevisions", &appsv1.ControllerRevisionList{}, all, here)
	a.list(ctx, s, "events", &corev1.EventList{}, a.tells, here)
	a.list(ctx, s, "node-events", &corev1.EventList{}, a.tells, client.InNamespace("default"), client.MatchingFields{"involvedObject.kind": "Node"})
	a.list(ctx, s, "nodes", &corev1.NodeList{}, a.wanted)
	there := client.InNamespace(status.LeaseNamespace)
	a.list(ctx, s, "coordinator/deployments", &appsv1.DeploymentList{}, all, there, coordinatorLabels)
	a.list(ctx, s, "coordinator/events", &corev1.EventList{}, all, there)
	a.lease(ctx, s)
	pods := &corev1.PodList{}
	if a.list(ctx, s, "coordinator/pods", pods, all, there, coordinatorLabels) {
		a.logs(ctx, s, pods.Items)
	}
}

func all(client.Object) bool { return true }

// wanted is a Machine that was asked for, or its Node, which has its name.
func (a *Archive) wanted(o client.Object) bool {
	return len(a.Summary.Machines) == 0 || slices.Contains(a.Summary.Machines, o.GetName())
}

// tells is an event about one of those, or about no machine at all.
func (a *Archive) tells(o client.Object) bool {
	e, is := o.(*corev1.Event)
	if !is || len(a.Summary.Machines) == 0 || e.InvolvedObject.Kind != "Machine" && e.InvolvedObject.Kind != "Node" {
		return true
	}
	return slices.Contains(a.Summary.Machines, e.InvolvedObject.Name)
}

func (a *Archive) list(ctx context.Context, s Source, folder string, list client.ObjectList, wanted func(client.Object) bool, opts ...client.ListOption) bool {
	if err := s.Client.List(ctx, list, opts...); err != nil {
		a.Miss(folder, err)
		return false
	}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if o, is := item.(client.Object); is && wanted(o) {
			return a.Object(folder+"/"+o.GetName()+".yaml", o)
		}
		return nil
	})
	if err != nil {
		a.Miss(folder, err)
	}
	return true
}

func (a *Archive) lease(ctx context.Context, s Source) {
	lease := &coordinationv1.Lease{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: status.LeaseNamespace, Name: status.LeaseName}, lease)
	if err == nil {
		err = a.Object("coordinator/lease.yaml", lease)
	}
	if err != nil {
		a.Miss("coordinator/lease", err)
	}
}

func (a *Archive) logs(ctx context.Context, s Source, pods []corev1.Pod) {
	if len(pods) > mostPods {
		a.Miss("coordinator/logs", fmt.Errorf("of %d pods only %d are read", len(pods), mostPods))
		pods = pods[:mostPods]
	}
	for _, p := range pods {
		for _, c := range p.Spec.Containers {
			for _, previous := range []bool{false, true} {
				a.log(ctx, s, &p, c.Name, previous)
			}
		}
	}
}

func (a *Archive) log(ctx context.Context, s Source, p *corev1.Pod, container string, previous bool) {
	name := "coordinator/logs/" + p.Name + "." + container
	if previous {
		name += ".previous"
	}
	// a line of the coordinator has some 200 bytes; the limit in bytes alone would be of the oldest ones
	lines := max(s.LogBytes/200, 1)
	stream, err := s.Kube.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines, Timestamps: true}).Stream(ctx)
	if previous && (apierrors.IsBadRequest(err) || apierrors.IsNotFound(err)) {
		return // it has not been restarted
	}
	if err != nil {
		a.Miss(name, err)
		return
	}
	defer stream.Close()
	text, err := tail(stream, s.LogBytes)
	if err != nil {
		a.Miss(name, err)
	}
	a.Text(name+".log", text)
}

// tail is the end of a text, from the begin of a line.
func tail(in io.Reader, most int64) (string, error) {
	var kept []byte
	cut := false
	buffer := make([]byte, 32<<10)
	for {
		n, err := in.Read(buffer)
		kept = append(kept, buffer[:n]...)
		if over := int64(len(kept)) - most; over > 0 {
			kept, cut = append([]byte(nil), kept[over:]...), true
		}
		if err == nil {
			continue
		}
		text := string(kept)
		if cut {
			_, text, _ = strings.Cut(text, "\n")
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return text, err
	}
}
