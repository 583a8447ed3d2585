package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// AttachedVolume is a volume that is still attached to a node whose pods have left.
type AttachedVolume struct {
	// Attachment is the name of the VolumeAttachment, Volume that of the PersistentVolume; "" for an inline one.
	Attachment string `json:"attachment"`
	Volume     string `json:"volume,omitempty"`
	// Attacher is the driver that has to detach it.
	Attacher string `json:"attacher"`
	// Error is what the driver said of its last try; "" when it said nothing.
	Error string `json:"error,omitempty"`
}

// String is one line for people.
func (v AttachedVolume) String() string {
	text := fmt.Sprintf("VolumeAttachment %s of PersistentVolume %s (%s)", v.Attachment, v.Volume, v.Attacher)
	if v.Error != "" {
		text += ": " + v.Error
	}
	return text
}

// awaitVolumes waits until the volumes of the pods that have left are detached: a host
// that goes down with a volume attached keeps it from the pod's successor for minutes.
// Volumes of pods that are still here stay attached, and are no concern of it.
func (r *run) awaitVolumes(ctx context.Context) error {
	if !r.opts.AwaitVolumes {
		return nil
	}
	attachments, leave := r.cluster.attachments.join(ctx, r.wake)
	defer leave()
	deadline := time.Now().Add(r.opts.VolumeDetachTimeout)
	var staying sets.Set[string]
	err := r.persist(ctx, deadline, func() (err error) { staying, err = r.volumesThatStay(ctx); return err })
	if err != nil {
		return err
	}
	timeout := time.NewTimer(time.Until(deadline))
	defer timeout.Stop()
	for said := ""; ; {
		if attachments.hasSynced() {
			r.result.Volumes = attached(attachments, r.node, staying)
			if len(r.result.Volumes) == 0 {
				return nil
			}
		}
		if text := describeVolumes(r.result.Volumes); text != said {
			said = text
			r.say(EventWaiting, ReasonVolumesAttached, text+"; waiting until "+utc(deadline)+" for them to be detached")
		}
		select {
		case <-r.wake:
		case <-attachments.refused:
			return missingPermission(attachments.refusal)
		case <-timeout.C:
			return r.volumesLate()
		case <-ctx.Done():
			return fmt.Errorf("waiting for the volumes of node %s: %w", r.node, ctx.Err())
		}
	}
}

// volumesLate applies the policy for volumes that stay attached, and says so in either case.
func (r *run) volumesLate() error {
	text := describeVolumes(r.result.Volumes)
	if text == "" {
		text = "no answer to which volumes are attached"
	}
	text = fmt.Sprintf("the pods of node %s have left, but after %s there is still: %s", r.node, r.opts.VolumeDetachTimeout, text)
	if r.opts.OnVolumesAttached == ActionProceed {
		r.say(EventWarning, ReasonVolumesAttached, text+"; going on, as the policy is Proceed")
		return nil
	}
	return &Blocked{
		Reason: ReasonVolumesAttached, Volumes: r.result.Volumes,
		Message: text + "; look at the storage driver, or set drain.onVolumesAttached to Proceed",
	}
}

// attached are the node's attached volumes but for those that stay, by name.
func attached(all *watched, node string, staying sets.Set[string]) []AttachedVolume {
	var out []AttachedVolume
	for _, va := range listOf[*storagev1.VolumeAttachment](all) {
		volume := ""
		if name := va.Spec.Source.PersistentVolumeName; name != nil {
			volume = *name
		}
		if va.Spec.NodeName != node || !va.Status.Attached || staying.Has(volume) {
			continue
		}
		v := AttachedVolume{Attachment: va.Name, Volume: volume, Attacher: va.Spec.Attacher}
		if va.Status.DetachError != nil {
			v.Error = va.Status.DetachError.Message
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b AttachedVolume) int { return strings.Compare(a.Attachment, b.Attachment) })
	return out
}

func describeVolumes(volumes []AttachedVolume) string {
	lines := make([]string, 0, len(volumes))
	for _, v := range volumes {
		lines = append(lines, v.String())
	}
	return enumerate(lines)
}

// volumesThatStay are the PersistentVolumes of the pods that are still on the node: a
// DaemonSet's, our own, and what a policy has left behind.
func (r *run) volumesThatStay(ctx context.Context) (sets.Set[string], error) {
	return r.volumesOf(ctx, listOf[*corev1.Pod](r.pods))
}

// volumesOf are the PersistentVolumes of pods that have not finished.
func (r *run) volumesOf(ctx context.Context, pods []*corev1.Pod) (sets.Set[string], error) {
	staying := sets.New[string]()
	for _, pod := range pods {
		if finished(pod) {
			continue
		}
		for _, claim := range claimsOf(pod) {
			pvc, err := r.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("getting PersistentVolumeClaim %s: %w", claim, err)
			}
			staying.Insert(pvc.Spec.VolumeName)
		}
	}
	return staying.Delete(""), nil
}

// claimsOf are the pod's PersistentVolumeClaims, those that were made for it alone too.
func claimsOf(pod *corev1.Pod) []types.NamespacedName {
	var out []types.NamespacedName
	for _, v := range pod.Spec.Volumes {
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = pod.Name + "-" + v.Name
		default:
			continue
		}
		out = append(out, types.NamespacedName{Namespace: pod.Namespace, Name: name})
	}
	return out
}
