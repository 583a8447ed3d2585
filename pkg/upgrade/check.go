package upgrade

// wanted is the assignment's target, parsed, with what is observed next to it.
type wanted struct {
	kubelet, kubeletNow           Version
	controlPlane, controlPlaneNow Version
	runtime, runtimeNow           Version
	etcd, etcdNow                 Version
	// changes says which of them have something to do.
	kubeletChanges, controlPlaneChanges, runtimeChanges, etcdChanges bool
	// config is what is to be effective of spec.kubelet.configuration, and configChanges that it is not.
	config        KubeletWish
	configChanges bool
	// renewal of certificates; nil: none is due.
	renewal *Renewal
	// finishes says that the control plane changes by no version: a run of kubeadm is brought to its end.
	finishes bool
}

// check refuses what no step could make right, before anything is planned.
func (p *planner) check() error {
	for _, one := range []func() error{p.checkIdentity, p.checkPolicy, p.checkMissingRole, p.checkControlPlane, p.checkKubelet, p.checkRuntime, p.checkDown, p.checkPackages, p.checkEtcd, p.checkConfiguration, p.checkRenewal} {
		if err := one(); err != nil {
			return p.cause(err)
		}
	}
	if !p.work() {
		return nil
	}
	for _, one := range []func() error{p.checkOS, p.checkArchitecture, p.checkRoles, p.checkDatabase, p.checkSkew, p.checkPairing} {
		if err := one(); err != nil {
			return p.cause(err)
		}
	}
	p.findings = append(p.findings, Unhandled(p.in.Spec)...)
	p.noteSecurity()
	return nil
}

// work says whether anything is to be done at all.
func (p *planner) work() bool {
	return p.want.kubeletChanges || p.want.controlPlaneChanges || p.want.runtimeChanges || p.want.etcdChanges || p.want.configChanges || p.osPending() || p.securityPending() || p.keptPending() || p.rebootPending() || p.renews()
}

// recorded says that the host has run the target's set of versions before, next to what stays.
func (p *planner) recorded() bool {
	return recordedIn(p.in.Record, p.in.Assignment.Target.Versions, p.in.Facts.Versions())
}

func parseTarget(field, text string) (Version, error) {
	v, ok := ParseKubernetes(text)
	if !ok {
		return v, refuse(ReasonVersionInvalid, "the target's %s version %q is no Kubernetes version: write it like v1.37.2", field, text)
	}
	return v, nil
}

func parseObserved(what, text string) (Version, error) {
	v, ok := ParseKubernetes(text)
	if !ok {
		return v, wait(ReasonVersionUnknown, "the version of the %s is %q, which is no version: nothing is planned on a guess; see that it runs and answers", what, text)
	}
	return v, nil
}

func later(a, b Version) Version {
	if a.LessThan(b) || !a.Known() {
		return b
	}
	return a
}
