package preview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// reportedFacts is what a Machine reports, in the form of facts, with the packages that
// its versions imply: enough to estimate a plan, and never to run one.
func reportedFacts(m *v1alpha1.Machine) upgrade.Facts {
	f := upgrade.Facts{APIVersion: upgrade.FactsAPIVersion, Kind: "Facts"}
	s := m.Status
	if s.Host != nil {
		f.Host = upgrade.HostFacts{MachineID: s.Host.MachineID, BootID: s.Host.BootID, SystemUUID: s.Host.SystemUUID}
	}
	if s.OS != nil {
		f.OS = upgrade.OSFacts{ID: s.OS.ID, VersionID: s.OS.VersionID, PrettyName: s.OS.PrettyName, Kernel: s.OS.Kernel, Architecture: s.OS.Architecture}
		f.OS.Family = upgrade.FamilyOf(s.OS.ID, nil)
		f.Packages.Manager = f.OS.Family
		f.Reboot.Required = s.OS.RebootRequired
		for _, p := range s.OS.Packages {
			install(&f, p.Name, p.Version)
		}
	}
	if v := s.Versions; v != nil {
		versionFacts(&f, v)
		if v.ControlPlane == nil && v.Etcd != "" {
			etcdFacts(&f, m, v.Etcd)
		}
	}
	return f
}

func versionFacts(f *upgrade.Facts, v *v1alpha1.ObservedVersions) {
	if v.Kubelet != "" {
		f.Kubelet = &upgrade.ComponentFacts{Running: v.Kubelet, Installed: v.Kubelet}
		install(f, "kubelet", upstream(v.Kubelet))
	}
	if v.Kubeadm != "" {
		f.Kubeadm = &upgrade.ComponentFacts{Installed: v.Kubeadm}
		install(f, "kubeadm", upstream(v.Kubeadm))
	}
	if c := v.ControlPlane; c != nil {
		f.Control = &upgrade.ControlFacts{APIServer: c.APIServer, ControllerManager: c.ControllerManager, Scheduler: c.Scheduler, Etcd: v.Etcd}
	}
	if r := v.ContainerRuntime; r != nil {
		f.Runtime = &upgrade.RuntimeFacts{Name: r.Name, Running: r.Version}
		parsed, runs := upgrade.ParseRuntime(r.Version)
		if !runs && r.Installed != "" {
			f.Runtime.Running, f.Runtime.Installed, f.Runtime.Stopped = "", r.Installed, true
			parsed, runs = upgrade.ParseRuntime(r.Installed)
		}
		if runs {
			install(f, r.Name, parsed.Version.Upstream())
		}
	}
}

// etcdFacts is a member of etcd on a machine without a control plane, and the others as far as it
// has told of them: all at its own version, for want of theirs.
func etcdFacts(f *upgrade.Facts, m *v1alpha1.Machine, version string) {
	f.EtcdUnit = &upgrade.EtcdUnitFacts{Unit: upgrade.UnitEtcd, Active: true, Installed: version}
	if v, ok := upgrade.ParseRuntime(version); ok {
		install(f, "etcd-server", v.Version.Upstream())
	}
	told := m.Status.Etcd
	if told == nil {
		told = &v1alpha1.ObservedEtcd{Members: 1, Quorum: true}
	}
	own := upgrade.EtcdMemberFacts{ID: "1", Name: told.Member, Started: true, Healthy: true, Version: version}
	if own.Name == "" {
		own.Name = m.Name
	}
	f.Etcd = &upgrade.EtcdFacts{Member: own.ID, Quorum: told.Quorum, Members: []upgrade.EtcdMemberFacts{own}}
	if told.Leader {
		f.Etcd.Leader = own.ID
	}
	unwell := slices.DeleteFunc(slices.Clone(told.Unwell), func(name string) bool { return name == own.Name })
	for i := 1; i < int(told.Members); i++ {
		other := upgrade.EtcdMemberFacts{ID: strconv.Itoa(i + 1), Name: fmt.Sprintf("member %d", i+1), Started: true, Healthy: true, Version: version}
		if i <= len(unwell) {
			other.Name, other.Healthy, other.Problem = unwell[i-1], false, "its Machine reports so"
		}
		f.Etcd.Members = append(f.Etcd.Members, other)
	}
}

// install notes an installed package; a version that is not known is not installed.
func install(f *upgrade.Facts, name, version string) {
	installed := slices.DeleteFunc(slices.Clone(f.Packages.Installed), func(p upgrade.InstalledPackage) bool { return p.Name == name })
	if version != "" {
		installed = append(installed, upgrade.InstalledPackage{Name: name, Version: version, State: "installed"})
	}
	f.Packages.Installed = installed
}

// hold notes that a package is on hold, or no longer.
func hold(f *upgrade.Facts, name string, held bool) {
	holds := slices.DeleteFunc(slices.Clone(f.Packages.Holds), func(h string) bool { return h == name })
	if held {
		holds = append(holds, name)
	}
	f.Packages.Holds = holds
}

func upstream(text string) string {
	v, ok := upgrade.ParseKubernetes(text)
	if !ok {
		return ""
	}
	return v.Upstream()
}

// after is the host once a hop has succeeded.
func after(f upgrade.Facts, t v1alpha1.Target, plan upgrade.Plan) upgrade.Facts {
	if t.Kubelet != "" && f.Kubelet != nil {
		k := *f.Kubelet
		k.Running, k.Installed = string(t.Kubelet), string(t.Kubelet)
		f.Kubelet = &k
	}
	if v := string(t.ControlPlane); v != "" && f.Control != nil {
		c := *f.Control
		c.APIServer, c.ControllerManager, c.Scheduler = v, v, v
		f.Control = &c
	}
	if r := t.ContainerRuntime; r != nil && f.Runtime != nil {
		runtime := *f.Runtime
		runtime.Running, runtime.Installed, runtime.Stopped = string(r.Version), string(r.Version), false
		f.Runtime = &runtime
	}
	if v := string(t.Etcd); v != "" {
		etcdAfter(&f, v)
	}
	for _, step := range plan.Steps {
		afterStep(&f, step)
	}
	return f
}

// etcdAfter is the member of a host once it was moved.
func etcdAfter(f *upgrade.Facts, version string) {
	if f.EtcdUnit != nil {
		u := *f.EtcdUnit
		u.Installed = version
		f.EtcdUnit = &u
	}
	if f.Etcd == nil {
		return
	}
	e := *f.Etcd
	e.Members = slices.Clone(e.Members)
	for i := range e.Members {
		if e.Members[i].ID == e.Member {
			e.Members[i].Version = version
		}
	}
	f.Etcd = &e
}

func afterStep(f *upgrade.Facts, step upgrade.Step) {
	switch step.Kind {
	case upgrade.StepInstallPackages:
		for _, change := range step.Packages {
			install(f, change.Name, change.To)
			if change.To == "" { // the hold goes with its package
				hold(f, change.Name, false)
			}
		}
	case upgrade.StepHoldPackages, upgrade.StepUnholdPackages:
		for _, change := range step.Packages {
			hold(f, change.Name, step.Kind == upgrade.StepHoldPackages)
		}
	case upgrade.StepKubeadmRenewCertificates:
		renewed(f)
	case upgrade.StepKubeadmUpgrade:
		if step.Kubeadm.ControlPlane {
			renewed(f)
		}
		if f.Kubelet != nil {
			k := f.Kubelet.CleanedBy(step.Kubeadm.Version)
			f.Kubelet = &k
		}
	case upgrade.StepSwitchSource:
		switched(f, step.Source)
	case upgrade.StepReboot:
		f.Reboot = upgrade.RebootFacts{}
	case upgrade.StepVerify:
		afterVerify(f, step.Expect)
	}
}

func switched(f *upgrade.Facts, change *upgrade.SourceChange) {
	f.Packages.Sources = slices.Clone(f.Packages.Sources)
	for i := range f.Packages.Sources {
		if s := &f.Packages.Sources[i]; s.File == change.File && s.URI == change.From {
			s.URI = change.To
			if change.Was != nil {
				s.Suites, s.Components, s.SignedBy = change.Suites, change.Components, change.SignedBy
			}
		}
	}
}

// afterVerify takes what the hop has started from what was on disk for what runs.
func afterVerify(f *upgrade.Facts, seen *upgrade.Expectation) {
	if seen == nil {
		return
	}
	if f.Kubelet != nil && seen.Kubelet != "" {
		k := *f.Kubelet
		k.Running = seen.Kubelet
		f.Kubelet = &k
	}
	if f.Runtime != nil && seen.Runtime != "" {
		r := *f.Runtime
		r.Running = seen.Runtime
		f.Runtime = &r
	}
}

// renewed leaves out the certificates whose new end only kubeadm will know.
func renewed(f *upgrade.Facts) {
	f.Certs = slices.DeleteFunc(slices.Clone(f.Certs), func(c upgrade.CertFacts) bool { return c.ManagedBy == upgrade.ManagedByKubeadm })
}

func unknownMessage(uris []string, t v1alpha1.Target) string {
	hint := "refit-agent facts"
	if v, ok := upgrade.ParseKubernetes(string(max(t.ControlPlane, t.Kubelet))); ok {
		hint += " --minor " + v.Minor()
	}
	return fmt.Sprintf("what %s offers is not in the facts, so packages and their digests are not known, and the plan has no hash: give the facts that %s prints on this host, with --package for each package in spec.os.packages", strings.Join(uris, ", "), hint)
}
