package drain

import (
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// survey reads what a forecast is made from, and nothing else.
type survey struct {
	*run
	attachments *watched // nil where volumes do not count
	webhooks    foundWebhooks
	leave       func()
}

// survey begins to watch, and waits until everything is known.
func (d *Drainer) survey(ctx context.Context, node string) (*survey, error) {
	quiet := *d
	quiet.opts.Progress = func(Event) {}
	s := &survey{run: newRun(&quiet, node)}
	pods := podsOn(s.client, node)
	pods.keep = stripPodForForecast
	s.run.pods = startWatch(ctx, s.client, pods, func() { signal(s.wake) })
	var leaves []func()
	s.leave = func() {
		for _, leave := range leaves {
			leave()
		}
	}
	var leave func()
	s.budgets, leave = s.cluster.budgets.join(ctx, s.wake)
	leaves = append(leaves, leave)
	if s.opts.AwaitVolumes {
		s.attachments, leave = s.cluster.attachments.join(ctx, s.wake)
		leaves = append(leaves, leave)
	}
	if err := s.known(ctx); err != nil {
		s.leave()
		return nil, err
	}
	s.webhooks = s.readWebhooks(ctx)
	return s, nil
}

// syncTimeout bounds how long a forecast waits for its lists.
const syncTimeout = time.Minute

func (s *survey) known(ctx context.Context) error {
	s.deadline = time.Now().Add(syncTimeout)
	if err := s.awaitSync(ctx, s.run.pods, "the pods of node "+s.node); err != nil {
		return err
	}
	if err := s.awaitSync(ctx, s.budgets, "the PodDisruptionBudgets"); err != nil || s.attachments == nil {
		return err
	}
	return s.awaitSync(ctx, s.attachments, "the VolumeAttachments")
}

// stripPodForForecast keeps, beside what a drain looks at, why containers are not ready.
func stripPodForForecast(o any) (any, error) {
	if p, ok := o.(*corev1.Pod); ok {
		containers, inits := p.Status.ContainerStatuses, p.Status.InitContainerStatuses
		_, _ = stripPod(p)
		p.Status.ContainerStatuses, p.Status.InitContainerStatuses = containers, inits
	}
	return o, nil
}

// look reads the node, has the filters judge its pods and makes the forecast.
func (s *survey) look(ctx context.Context) (Forecast, error) {
	n, err := s.getNode(ctx)
	if err != nil {
		return Forecast{}, orPermission(err)
	}
	s.judgeNode(n)
	in := scene{node: s.node, now: time.Now(), opts: s.opts, unreachable: s.health, webhooks: s.webhooks.by, unknown: s.webhooks.unread}
	members, unread := map[types.UID][]*corev1.Pod{}, map[types.UID]error{}
	var staying []*corev1.Pod
	for _, pod := range listOf[*corev1.Pod](s.run.pods) {
		j := judged{pod: pod, budgets: matching(pod, s.budgets)}
		var err error
		if j.verdict, j.reason, j.message, err = s.selector.judge(ctx, pod); err != nil {
			return Forecast{}, fmt.Errorf("judging pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if j.verdict == verdictIgnore {
			staying = append(staying, pod)
		} else {
			s.readMembers(ctx, j, members, unread)
		}
		in.pods = append(in.pods, j)
	}
	if err := ctx.Err(); err != nil {
		return Forecast{}, fmt.Errorf("reading the budgets of node %s: %w", s.node, err)
	}
	in.members = func(b *policyv1.PodDisruptionBudget) []*corev1.Pod { return members[b.UID] }
	in.unread = func(b *policyv1.PodDisruptionBudget) error { return unread[b.UID] }
	if s.attachments != nil {
		stay, err := s.volumesOf(ctx, staying)
		if err != nil {
			return Forecast{}, orPermission(err)
		}
		in.volumes = attached(s.attachments, s.node, stay)
	}
	return foresee(in), nil
}

// readMembers reads all pods of a budget that holds the pod now: which of them are not
// ready is what it waits for. A budget whose pods cannot be read leaves the forecast
// without that much, and is told of.
func (s *survey) readMembers(ctx context.Context, j judged, members map[types.UID][]*corev1.Pod, unread map[types.UID]error) {
	if !guarded(j.pod) || len(j.budgets) != 1 || allows(j.budgets[0], j.pod) {
		return
	}
	b := j.budgets[0]
	if _, known := members[b.UID]; known || unread[b.UID] != nil {
		return
	}
	out, err := s.membersOf(ctx, b)
	if err != nil {
		unread[b.UID] = err
		return
	}
	members[b.UID] = out
}

func (s *survey) membersOf(ctx context.Context, b *policyv1.PodDisruptionBudget) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of budget %s/%s: %w", b.Namespace, b.Name, err)
	}
	list, err := s.client.CoreV1().Pods(b.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of budget %s/%s: %w", b.Namespace, b.Name, err)
	}
	out := []*corev1.Pod{}
	for i := range list.Items {
		if pod := &list.Items[i]; !finished(pod) {
			out = append(out, pod)
		}
	}
	return out, nil
}

// orPermission tells what no other try would cure.
func orPermission(err error) error {
	if apierrors.IsForbidden(err) {
		return missingPermission(err)
	}
	return err
}

// lookAgain is how long a forecast that is followed stands without any news.
const lookAgain = 5 * time.Minute

// Follow makes the forecast of the node again with each news of its pods or of budgets,
// and tells of it when it has changed, until ctx ends. An error is told too, and is
// followed by another try.
func (d *Drainer) Follow(ctx context.Context, node string, tell func(Forecast, error)) {
	wait := d.pace.first
	for ctx.Err() == nil {
		err := d.follow(ctx, node, func(f Forecast) {
			wait = d.pace.first
			tell(f, nil)
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			tell(Forecast{}, err)
		}
		select {
		case <-time.After(jitter(wait)):
			wait = min(2*wait, lookAgain)
		case <-ctx.Done():
		}
	}
}

func (d *Drainer) follow(ctx context.Context, node string, tell func(Forecast)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := d.survey(ctx, node)
	if err != nil {
		return err
	}
	defer s.leave()
	again := time.NewTimer(jitter(lookAgain)) // a new survey asks anew for what is not watched
	defer again.Stop()
	for told := (Forecast{}); ; {
		f, err := s.look(ctx)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(f, told) {
			told = f
			tell(f)
		}
		select {
		case <-s.wake:
		case <-s.run.pods.refused:
			return missingPermission(s.run.pods.refusal)
		case <-s.budgets.refused:
			return missingPermission(s.budgets.refusal)
		case <-again.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		select { // what comes close together is one news
		case <-time.After(d.pace.look):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
