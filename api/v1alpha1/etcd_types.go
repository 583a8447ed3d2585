package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObservedEtcd is how the members of etcd are, as one host sees them: nothing of it changes with every write to etcd.
type ObservedEtcd struct {
	// Member is the name of the member on this host; empty where etcd runs elsewhere.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Member string `json:"member,omitempty"`
	// Leader says that the member on this host leads.
	// +optional
	Leader bool `json:"leader,omitempty"`
	// Members is how many members have a vote.
	Members int32 `json:"members"`
	// Healthy is how many of them have started, answer at their own endpoint and have caught up.
	Healthy int32 `json:"healthy"`
	// Learners is how many members have no vote.
	// +optional
	Learners int32 `json:"learners,omitempty"`
	// Quorum says that a read that takes a quorum was answered.
	// +optional
	Quorum bool `json:"quorum,omitempty"`
	// Unwell are the names of the members with a vote that are not healthy; the id of one without a name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:MaxLength=64
	Unwell []string `json:"unwell,omitempty"`
	// Alarms that are raised, such as "NOSPACE on cp2".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=80
	Alarms []string `json:"alarms,omitempty"`
	// Problem is why nobody could be asked; the numbers are 0 then.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Problem string `json:"problem,omitempty"`
}

// EtcdSnapshot is a verified snapshot of etcd on the host.
type EtcdSnapshot struct {
	// Path on the host.
	// +kubebuilder:validation:MaxLength=256
	Path string `json:"path"`
	// Revision of the store in it.
	Revision int64 `json:"revision"`
	// SHA256 of its content, without the digest at its end.
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256"`
	// Time at which it was taken, by the host's clock.
	Time metav1.Time `json:"time"`
}
