package executor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/executor/journal/journaltest"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	oldKubernetes, newKubernetes = "1.36.3", "1.37.2"
	oldRuntime, newRuntime       = "1.7.28", "2.4.2"
	dropIn                       = "/etc/kubernetes/kubelet.conf.d/50-refit.conf"
	sourceFile                   = "/etc/apt/sources.list.d/kubernetes.list"
)

func change(name, from, to string) upgrade.PackageChange {
	return upgrade.PackageChange{Name: name, From: from, To: to, File: name + "_" + to + ".deb", SHA256: hostfake.Digest(name, to)}
}

func kubernetes(name string) upgrade.PackageChange {
	return change(name, oldKubernetes+"-1.1", newKubernetes+"-1.1")
}

func named(names ...string) []upgrade.PackageChange {
	var changes []upgrade.PackageChange
	for _, n := range names {
		changes = append(changes, upgrade.PackageChange{Name: n})
	}
	return changes
}

// workerPlan is everything that a worker's window may hold, in the order of a plan.
func workerPlan() upgrade.Plan {
	containerd := change("containerd", oldRuntime+"-1", newRuntime+"-1")
	return sealed(upgrade.Plan{AssignmentID: "7-abc", Type: v1alpha1.OperationUpgrade, Disruption: v1alpha1.DisruptionDrain, Steps: []upgrade.Step{
		{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{
			Kubelet: "v" + oldKubernetes, Runtime: oldRuntime, Packages: []upgrade.PackageChange{kubernetes("kubelet"), containerd},
		}},
		{Kind: upgrade.StepRunHook, Hook: "raid-check"},
		{Kind: upgrade.StepSwitchSource, Source: &upgrade.SourceChange{Name: "kubernetes", File: sourceFile, From: "http://mirror/v1.36/deb/", To: "http://mirror/v1.37/deb/"}},
		{Kind: upgrade.StepUnholdPackages, Packages: named("kubeadm")},
		{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{kubernetes("kubeadm")}},
		{Kind: upgrade.StepHoldPackages, Packages: named("kubeadm")},
		{Kind: upgrade.StepKubeadmUpgrade, Kubeadm: &upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmOther, Version: "v" + newKubernetes}},
		{Kind: upgrade.StepWriteConfig, File: &upgrade.FileChange{Path: dropIn, Content: "maxPods: 200\n", Mode: 0o644}},
		{Kind: upgrade.StepStopSandboxes, Unit: "kubelet.service"},
		{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{containerd}},
		{Kind: upgrade.StepReloadUnits},
		{Kind: upgrade.StepRestartUnit, Unit: "containerd.service"},
		{Kind: upgrade.StepUnholdPackages, Packages: named("kubelet", "kubectl")},
		{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{kubernetes("kubelet"), kubernetes("kubectl")}},
		{Kind: upgrade.StepHoldPackages, Packages: named("kubelet", "kubectl")},
		{Kind: upgrade.StepReloadUnits},
		{Kind: upgrade.StepRestartUnit, Unit: "kubelet.service"},
		{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{
			Kubelet: "v" + newKubernetes, RuntimeName: "containerd", Runtime: newRuntime, StartSandbox: true,
			Packages: []upgrade.PackageChange{kubernetes("kubelet"), kubernetes("kubeadm"), kubernetes("kubectl"), containerd},
		}},
	}})
}

// controlPlanePlan is the hop of a control-plane host.
func controlPlanePlan() upgrade.Plan {
	return sealed(upgrade.Plan{AssignmentID: "8-abc", Type: v1alpha1.OperationUpgrade, Disruption: v1alpha1.DisruptionDrain, Steps: []upgrade.Step{
		{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{ControlPlane: "v" + oldKubernetes, Kubelet: "v" + oldKubernetes}},
		{Kind: upgrade.StepUnholdPackages, Packages: named("kubeadm")},
		{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{kubernetes("kubeadm")}},
		{Kind: upgrade.StepHoldPackages, Packages: named("kubeadm")},
		{Kind: upgrade.StepKubeadmUpgrade, Kubeadm: &upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v" + newKubernetes, ControlPlane: true}},
		{Kind: upgrade.StepUnholdPackages, Packages: named("kubelet")},
		{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{kubernetes("kubelet")}},
		{Kind: upgrade.StepHoldPackages, Packages: named("kubelet")},
		{Kind: upgrade.StepReloadUnits},
		{Kind: upgrade.StepRestartUnit, Unit: "kubelet.service"},
		{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{Kubelet: "v" + newKubernetes, ControlPlane: "v" + newKubernetes}},
	}})
}

func rebootPlan() upgrade.Plan {
	return sealed(upgrade.Plan{AssignmentID: "9-abc", Type: v1alpha1.OperationReboot, Disruption: v1alpha1.DisruptionReboot, Steps: []upgrade.Step{
		{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{BootID: "boot-1"}},
		{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{change("linux-image-amd64", "", "6.12-1")}},
		{Kind: upgrade.StepReboot, Reason: "kernel"},
		{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{BootIDNot: "boot-1", Kubelet: "v" + oldKubernetes}},
		{Kind: upgrade.StepRunHook, Hook: "smoke"},
	}})
}

func sealed(p upgrade.Plan) upgrade.Plan {
	hash, err := p.ComputeHash()
	if err != nil {
		panic(err)
	}
	p.Hash = hash
	return p
}

// bench is one host, its journal and the operation that runs on it.
type bench struct {
	t    *testing.T
	host *hostfake.Host
	fs   *journaltest.FS
	dir  string
	op   upgrade.Operation
}

func worker(t *testing.T) *bench {
	h := hostfake.New(oldKubernetes, oldRuntime)
	h.Sources[sourceFile] = "http://mirror/v1.36/deb/"
	return newBench(t, h, workerPlan())
}

func controlPlane(t *testing.T) *bench {
	return newBench(t, hostfake.New(oldKubernetes, oldRuntime).WithControlPlane("v"+oldKubernetes), controlPlanePlan())
}

func rebooting(t *testing.T) *bench {
	return newBench(t, hostfake.New(oldKubernetes, oldRuntime), rebootPlan())
}

func newBench(t *testing.T, h *hostfake.Host, plan upgrade.Plan) *bench {
	for _, name := range []string{"kubelet", "kubeadm", "kubectl"} {
		h.Kept[name+" "+oldKubernetes+"-1.1"] = true
	}
	h.Kept["containerd "+oldRuntime+"-1"] = true
	dir := t.TempDir()
	return &bench{t: t, host: h, fs: journaltest.New(h.Faults).Have(dir), dir: dir, op: upgrade.Operation{ID: "grant-1", Machine: "w1", Plan: plan}}
}

// executor is a new process on the host.
func (b *bench) executor() *Executor {
	return New(Config{
		StateDir: b.dir, Host: b.host.Host(), Journal: b.fs, Poll: 50 * time.Microsecond,
		DeadlineCap: 2 * time.Second, LockWait: time.Second,
	})
}

// run is a process that runs the operation; it may crash.
func (b *bench) run() (rec journal.Record, err error, crash string) {
	crash, _ = hostfake.Crashes(func() { rec, err = b.executor().Run(context.Background(), b.op) })
	return rec, err, crash
}

// finish runs the operation, over all reboots, to its outcome.
func (b *bench) finish() journal.Record {
	b.t.Helper()
	for range 3 {
		rec, err, crash := b.run()
		if crash == "rebooting" {
			continue
		}
		require.Empty(b.t, crash)
		require.NoError(b.t, err)
		require.True(b.t, rec.Finished(), "the operation has an outcome")
		return rec
	}
	require.FailNow(b.t, "the operation reboots without end")
	return journal.Record{}
}

// comparable is a state without what may differ between two good histories.
func comparable(s hostfake.State) hostfake.State {
	s.BootID, s.Boots, s.Effects, s.Containers = "", 0, nil, nil
	return s
}
