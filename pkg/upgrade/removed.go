package upgrade

// kubeletFlagsRemoved are the flags that kubelets from a minor on no longer know. A kubelet
// that is given an unknown flag does not start. From v1.30 on these are the flags of
// cmd/kubelet/app of one minor that the next one lacks, such as
// https://github.com/kubernetes/kubernetes/tree/v1.37.2/cmd/kubelet/app/options; those of
// v1.24 went with dockershim (https://github.com/kubernetes/enhancements/issues/2221).
// Fields of the kubelet's configuration have no such table: none went from v1.29 to
// v1.37, and a kubelet ignores those that it does not know, with a word in its log.
var kubeletFlagsRemoved = map[int][]string{
	24: {
		"network-plugin", "network-plugin-mtu", "cni-bin-dir", "cni-conf-dir", "cni-cache-dir", "docker-endpoint",
		"image-pull-progress-deadline", "experimental-dockershim-root-directory",
	},
	27: {"container-runtime"},
	31: {"iptables-drop-bit", "iptables-masquerade-bit", "keep-terminated-pod-volumes"},
	34: {"cloud-config", "register-schedulable"},
	35: {"pod-infra-container-image"},
	37: {
		"application-metrics-count-limit", "boot-id-file", "container-hints", "containerd", "containerd-namespace", "enable-load-reader",
		"event-storage-age-limit", "event-storage-event-limit", "global-housekeeping-interval", "log-cadvisor-usage", "machine-id-file",
		"storage-driver-buffer-duration", "storage-driver-db", "storage-driver-host", "storage-driver-password", "storage-driver-secure",
		"storage-driver-table", "storage-driver-user",
	},
}

// kubeadmCleansFlags says the kubeadm of which minor takes a removed flag out of kubeadm-flags.env.
var kubeadmCleansFlags = map[string]int{
	"container-runtime":         27,
	"pod-infra-container-image": 35,
}

// featureGatesRemoved are the feature gates that components from a minor on no longer know:
// what v1.29 to v1.37 have dropped, as their kubelets themselves say, and as pkg/features of
// Kubernetes, apiserver and apiextensions-apiserver have it in the last release of each minor, such as
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/features/kube_features.go. Older minors are not listed.
var featureGatesRemoved = map[int][]string{
	30: {
		"APISelfSubjectReview", "CSIMigrationAzureFile", "ExpandedDNSConfig", "ExperimentalHostUserNamespaceDefaulting", "IPTablesOwnershipCleanup",
		"KubeletPodResources", "KubeletPodResourcesGetAllocatable", "LegacyServiceAccountTokenTracking", "MinimizeIPTablesRestore",
		"ProxyTerminatingEndpoints", "RemoveSelfLink", "SecurityContextDeny",
	},
	31: {
		"APIPriorityAndFairness", "CSIMigrationRBD", "CSINodeExpandSecret", "ConsistentHTTPGetHandlers", "CustomResourceValidationExpressions",
		"DefaultHostNetworkHostPortsInPodTemplates", "InTreePluginAWSUnregister", "InTreePluginAzureDiskUnregister", "InTreePluginAzureFileUnregister",
		"InTreePluginGCEUnregister", "InTreePluginOpenStackUnregister", "InTreePluginRBDUnregister", "InTreePluginvSphereUnregister", "JobReadyPods",
		"ReadWriteOncePod", "ServiceNodePortStaticSubrange", "SkipReadOnlyValidationGCE",
	},
	32: {
		"CloudControllerManagerWebhook", "CloudDualStackNodeIPs", "DRAControlPlaneController", "HPAContainerMetrics", "KMSv2", "KMSv2KDF", "LegacyServiceAccountTokenCleanUp",
		"MinDomainsInPodTopologySpread", "NewVolumeManagerReconstruction", "NodeOutOfServiceVolumeDetach", "PodHostIPs", "ServerSideApply",
		"ServerSideFieldValidation", "StableLoadBalancerNodeSet", "ValidatingAdmissionPolicy", "ZeroLimitedNominalConcurrencyShares",
	},
	33: {
		"APIListChunking", "AdmissionWebhookMatchConditions", "AggregatedDiscoveryEndpoint", "AppArmor", "AppArmorFields", "CPUManager",
		"DisableCloudProviders", "DisableKubeletCloudCredentialProviders", "EfficientWatchResumption", "JobPodFailurePolicy",
		"KubeProxyDrainingTerminatingNodes", "PDBUnhealthyPodEvictionPolicy", "PersistentVolumeLastPhaseTransitionTime", "RemainingItemCount",
		"VolumeCapacityPriority", "WatchBookmark",
	},
	34: {
		"DevicePluginCDIDevices", "ElasticIndexedJob", "LegacySidecarContainers", "PodDisruptionConditions", "StatefulSetStartOrdinal",
	},
	35: {
		"AllowServiceLBStatusOnNonLB", "ComponentSLIs", "CronJobsScheduledAnnotation", "LoadBalancerIPMode", "PodIndexLabel",
		"ProbeHostPodSecurityStandards", "SizeMemoryBackedVolumes", "StatefulSetAutoDeletePVC", "StrictCostEnforcementForVAP",
		"StrictCostEnforcementForWebhooks", "UserNamespacesPodSecurityStandards",
	},
	36: {
		"CSIMigrationPortworx", "HonorPVReclaimPolicy", "InPlacePodVerticalScalingAllocatedStatus", "InTreePluginPortworxUnregister", "MemoryManager",
		"ServiceTrafficDistribution", "StructuredAuthorizationConfiguration", "TopologyAwareHints", "WatchFromStorageWithoutResourceVersion",
	},
	37: {
		"APIServerTracing", "AnonymousAuthConfigurableEndpoints", "AnyVolumeDataSource", "AuthorizeNodeWithSelectors", "AuthorizeWithSelectors",
		"BtreeWatchCache", "ConsistentListFromCache", "GangScheduling", "JobBackoffLimitPerIndex", "JobPodReplacementPolicy", "JobSuccessPolicy",
		"LogarithmicScaleDown", "OrderedNamespaceDeletion", "PodLifecycleSleepAction", "PodLifecycleSleepActionAllowZero", "PreventStaticPodAPIReferences",
		"RelaxedDNSSearchValidation", "ResilientWatchCacheInitialization", "RetryGenerateName", "SchedulerQueueingHints", "SidecarContainers",
		"StreamingCollectionEncodingToJSON", "StreamingCollectionEncodingToProtobuf", "StructuredAuthenticationConfiguration", "WorkloadAwarePreemption",
	},
}
