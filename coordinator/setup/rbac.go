package setup

// What the coordinator may do, and nothing else. In the cluster:
//
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch
//
// Fail-closed webhooks that only pods of the node to be drained answer:
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=list
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
//
// What a reboot waits for, the volumes of pods that have left:
//
// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattachments,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get
//
// The leases of the nodes, to see that a kubelet lives:
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=kube-node-lease,resources=leases,verbs=get
//
// In the namespace of the Machines (it hands the agents what it may do itself with one Machine, no more):
//
// +kubebuilder:rbac:groups=refit.dev,namespace=refit,resources=machines,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=refit.dev,namespace=refit,resources=machines/status;machinedeployments/status;machinedisruptionbudgets/status,verbs=get;patch
// +kubebuilder:rbac:groups=refit.dev,namespace=refit,resources=machines/finalizers,verbs=update
// +kubebuilder:rbac:groups=refit.dev,namespace=refit,resources=machinedeployments;machinedisruptionbudgets,verbs=get;list;watch
// +kubebuilder:rbac:groups=refit.dev,namespace=refit,resources=ledgers,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=apps,namespace=refit,resources=controllerrevisions,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,namespace=refit,resources=roles;rolebindings,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups="",namespace=refit,resources=serviceaccounts,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,namespace=refit,resources=events,verbs=create;patch
//
// An agent renews its own token. The coordinator hands that right out, for which it must have it;
// deploy/policy/token.yaml refuses it the use:
//
// +kubebuilder:rbac:groups="",namespace=refit,resources=serviceaccounts/token,verbs=create
//
// The heartbeat of a host without a Node. The agent renews it, and the coordinator hands that right out, for which it must have it:
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=refit,resources=leases,verbs=get;create;patch
//
// In its own namespace, the lead:
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=refit-system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=refit-system,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=refit-system,resources=events,verbs=create;patch
