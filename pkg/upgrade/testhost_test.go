package upgrade

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

const (
	debianURI = "http://deb.example/debian"
	k8sURI    = "https://pkgs.example/core:/stable:/%s/deb/"
)

// workerFacts are those of an apt host with kubelet, kubeadm and kubectl of one version, and containerd.
func workerFacts(kubernetes, containerd string) Facts {
	v, _ := ParseKubernetes(kubernetes)
	installed := []InstalledPackage{{Name: "containerd", Version: containerd + "-1"}}
	for _, name := range kubernetesPackages {
		installed = append(installed, InstalledPackage{Name: name, Version: v.Upstream() + "-1.1", State: "installed"})
	}
	return Facts{
		Host:    HostFacts{BootID: "boot-1", MachineID: "machine-1"},
		OS:      OSFacts{ID: "debian", VersionID: "12", Family: "apt"},
		Kubelet: &ComponentFacts{Running: kubernetes, Installed: kubernetes, Unit: "kubelet.service", Active: true},
		Kubeadm: &ComponentFacts{Installed: kubernetes},
		Runtime: &RuntimeFacts{Name: "containerd", Running: "v" + containerd, Installed: containerd, Unit: "containerd.service", Ready: true},
		Node:    &NodeFacts{Name: "w1"},
		Packages: PackageFacts{
			Manager: "apt", Installed: installed, Holds: []string{"kubeadm", "kubectl", "kubelet"},
			Sources: []SourceFacts{
				{File: "/etc/apt/sources.list", URI: debianURI, Suites: []string{"bookworm"}, Components: []string{"main"}, Provides: []string{"containerd", "runc"}},
				{File: "/etc/apt/sources.list.d/k8s.list", URI: fmt.Sprintf(k8sURI, v.Minor()), Suites: []string{"/"}, SignedBy: "/etc/apt/keyrings/k8s.gpg", Provides: kubernetesPackages},
			},
		},
	}
}

func controlPlaneFacts(kubernetes, containerd string) Facts {
	f := workerFacts(kubernetes, containerd)
	f.Control = &ControlFacts{APIServer: kubernetes, ControllerManager: kubernetes, Scheduler: kubernetes, Etcd: "3.6.4"}
	return f
}

// candidatesOf offers the Kubernetes packages at some versions and containerd at others.
func candidatesOf(kubernetes, containerd []string) []Candidate {
	var out []Candidate
	for _, text := range kubernetes {
		v, _ := ParseKubernetes(text)
		for _, name := range kubernetesPackages {
			out = append(out, candidate(name, v.Upstream()+"-1.1", fmt.Sprintf(k8sURI, v.Minor())))
		}
	}
	for _, v := range containerd {
		out = append(out, candidate("containerd", v+"-1", debianURI))
	}
	return out
}

func candidate(name, version, source string) Candidate {
	return Candidate{Name: name, Version: version, Source: source, Path: "./" + name + "_" + version + "_amd64.deb", SHA256: digestOf(name, version), Size: 1}
}

func digestOf(name, version string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(name+"@"+version)))
}

func worker() v1alpha1.MachineSpec {
	return v1alpha1.MachineSpec{Roles: []v1alpha1.Role{v1alpha1.RoleWorker}}
}

func controlPlane() v1alpha1.MachineSpec {
	return v1alpha1.MachineSpec{Roles: []v1alpha1.Role{v1alpha1.RoleControlPlane}}
}

func containerdAt(version string) *v1alpha1.ContainerRuntime {
	return &v1alpha1.ContainerRuntime{Name: v1alpha1.RuntimeContainerd, Version: v1alpha1.ReleaseVersion(version)}
}

func kubeletTo(version, api string) v1alpha1.Assignment {
	return v1alpha1.Assignment{
		ID: "1-a", Type: v1alpha1.OperationUpgrade, KubeadmRole: v1alpha1.KubeadmOther,
		Target: v1alpha1.Target{Versions: v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(version)}},
		Skew:   &v1alpha1.Skew{MinAPIServer: api, MaxAPIServer: api},
	}
}

func controlPlaneTo(version string) v1alpha1.Assignment {
	a := kubeletTo(version, version)
	a.KubeadmRole = v1alpha1.KubeadmFirst
	a.Target.ControlPlane = a.Target.Kubelet
	return a
}

// outline is a plan's steps in short.
func outline(plan Plan) []string {
	var out []string
	for _, s := range plan.Steps {
		line := string(s.Kind)
		for _, c := range s.Packages {
			line += " " + c.Name
			if c.To != "" {
				line += "=" + c.To
			}
		}
		if s.Unit != "" {
			line += " " + s.Unit
		}
		if s.Source != nil {
			line += " " + s.Source.To
		}
		if s.Kubeadm != nil {
			line += fmt.Sprintf(" %s %s", s.Kubeadm.Role, s.Kubeadm.Version)
		}
		out = append(out, line)
	}
	return out
}

// requireBlocked asserts a refusal and returns it.
func requireBlocked(t *testing.T, err error, reason string) *Blocked {
	t.Helper()
	var blocked *Blocked
	require.ErrorAs(t, err, &blocked)
	require.NotNil(t, blocked, "nothing is refused, and %s is what should be", reason)
	require.Equal(t, reason, blocked.Reason, blocked.Message)
	require.NotEmpty(t, blocked.Message)
	return blocked
}

func reasons(findings []Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Reason)
	}
	slices.Sort(out)
	return out
}
