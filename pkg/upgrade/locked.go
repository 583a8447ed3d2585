package upgrade

// A gate that is locked may be set to what it is locked to and to nothing else: a
// component that is told otherwise does not start. These are locked in the releases
// from a minor on (v1.30 stands for earlier ones as well), as pkg/features of
// Kubernetes, apiserver and apiextensions-apiserver have it in the last release of each
// minor, such as https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/features/kube_features.go.
var (
	featureGatesLockedOn = map[int][]string{
		30: {
			"APIListChunking", "APIPriorityAndFairness", "AdmissionWebhookMatchConditions", "AggregatedDiscoveryEndpoint",
			"CPUManager", "CSINodeExpandSecret", "CloudDualStackNodeIPs", "ConsistentHTTPGetHandlers",
			"CustomResourceValidationExpressions", "EfficientWatchResumption", "HPAContainerMetrics", "JobReadyPods",
			"KMSv2", "KMSv2KDF", "LegacyServiceAccountTokenCleanUp", "MinDomainsInPodTopologySpread",
			"NewVolumeManagerReconstruction", "NodeOutOfServiceVolumeDetach", "PodHostIPs", "PodSchedulingReadiness",
			"ReadWriteOncePod", "RemainingItemCount", "ServerSideApply", "ServerSideFieldValidation",
			"ServiceNodePortStaticSubrange", "StableLoadBalancerNodeSet", "ValidatingAdmissionPolicy", "WatchBookmark",
			"ZeroLimitedNominalConcurrencyShares",
		},
		31: {
			"AppArmor", "AppArmorFields", "DevicePluginCDIDevices", "DisableCloudProviders",
			"DisableKubeletCloudCredentialProviders", "ElasticIndexedJob", "JobPodFailurePolicy",
			"KubeProxyDrainingTerminatingNodes", "LogarithmicScaleDown", "PDBUnhealthyPodEvictionPolicy",
			"PersistentVolumeLastPhaseTransitionTime", "PodDisruptionConditions", "StatefulSetStartOrdinal",
		},
		32: {
			"CronJobsScheduledAnnotation", "CustomResourceFieldSelectors", "LoadBalancerIPMode", "MemoryManager",
			"PodIndexLabel", "RetryGenerateName", "ServiceAccountTokenJTI", "ServiceAccountTokenNodeBindingValidation",
			"ServiceAccountTokenPodNodeInfo", "SizeMemoryBackedVolumes", "StatefulSetAutoDeletePVC",
			"StrictCostEnforcementForVAP", "StrictCostEnforcementForWebhooks", "StructuredAuthorizationConfiguration",
			"TopologyManagerPolicyOptions",
		},
		33: {
			"AnyVolumeDataSource", "BtreeWatchCache", "CPUManagerPolicyOptions", "CRDValidationRatcheting",
			"CSIMigrationPortworx", "HonorPVReclaimPolicy", "JobBackoffLimitPerIndex", "JobSuccessPolicy",
			"MatchLabelKeysInPodAffinity", "NFTablesProxyMode", "NodeInclusionPolicyInPodTopologySpread",
			"RecursiveReadOnlyMounts", "ServiceAccountTokenNodeBinding", "ServiceTrafficDistribution", "SidecarContainers",
			"TopologyAwareHints",
		},
		34: {
			"APIServerTracing", "AnonymousAuthConfigurableEndpoints", "AuthorizeNodeWithSelectors", "AuthorizeWithSelectors",
			"ConsistentListFromCache", "JobPodReplacementPolicy", "KubeletCgroupDriverFromCRI", "KubeletTracing",
			"MultiCIDRServiceAllocator", "NodeSwap", "OrderedNamespaceDeletion", "PodLifecycleSleepAction",
			"PodLifecycleSleepActionAllowZero", "ProbeHostPodSecurityStandards", "RecoverVolumeExpansionFailure",
			"RelaxedDNSSearchValidation", "RelaxedEnvironmentVariableValidation", "ResilientWatchCacheInitialization",
			"SchedulerQueueingHints", "SeparateTaintEvictionController", "StreamingCollectionEncodingToJSON",
			"StreamingCollectionEncodingToProtobuf", "StructuredAuthenticationConfiguration", "WinDSR", "WinOverlay",
		},
		35: {
			"AggregatedDiscoveryRemoveBetaType", "DisableAllocatorDualWrite", "DynamicResourceAllocation",
			"ExecProbeTimeout", "ImageMaximumGCAge", "InPlacePodVerticalScaling", "JobManagedBy",
			"PodObservedGenerationTracking", "PreferSameTrafficDistribution", "SupplementalGroupsPolicy",
		},
		36: {
			"CSIServiceAccountTokenSecrets", "DRAAdminAccess", "DeclarativeValidation", "DisableNodeKubeProxyVersion",
			"ExternalServiceAccountTokenSigner", "ImageVolume", "KubeletFineGrainedAuthz", "KubeletPSI",
			"KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet", "MutableCSINodeAllocatableCount",
			"NodeLogQuery", "ProcMountType", "SELinuxChangePolicy", "SELinuxMountReadWriteOncePod", "UserNamespacesSupport",
			"VolumeAttributesClass",
		},
		37: {
			"DRADeviceTaintRules", "DRADeviceTaints", "DRAExtendedResource", "DRAPrioritizedList",
			"DRAResourceClaimDeviceStatus", "DisableCPUQuotaWithExclusiveCPUs", "HPAConfigurableTolerance",
			"HostnameOverride", "InPlacePodVerticalScalingInitContainers", "NodeDeclaredFeatures", "PLEGOnDemandRelist",
			"PodReadyToStartContainersCondition", "RelaxedServiceNameValidation", "WatchCacheInitializationPostStartHook",
		},
	}
	featureGatesLockedOff = map[int][]string{
		32: {
			"AllowServiceLBStatusOnNonLB",
		},
		33: {
			"WatchFromStorageWithoutResourceVersion",
		},
		35: {
			"AllowOverwriteTerminationGracePeriodSeconds",
		},
		36: {
			"GitRepoVolumeDriver", "SeparateCacheWatchRPC",
		},
		37: {
			"DeclarativeValidationTakeover",
		},
	}
)
