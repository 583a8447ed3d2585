package status_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/status"
)

func reported(change func(*v1alpha1.MachineStatus)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{Status: v1alpha1.MachineStatus{Host: &v1alpha1.HostIdentity{MachineID: "m"}}}
	change(&m.Status)
	return m
}

func condition(kind string, s metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: s, Reason: reason, Message: message}}
}

func TestAMachineSaysWhatItWaitsFor(t *testing.T) {
	for name, tc := range map[string]struct {
		machine *v1alpha1.Machine
		want    string
	}{
		"nothing": {reported(func(s *v1alpha1.MachineStatus) {
			s.Conditions = condition(v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "UpToDate", "all well")
		}), ""},
		"nothing, on a host whose certificates lapse": {reported(func(s *v1alpha1.MachineStatus) {
			s.Conditions = condition(v1alpha1.ConditionCertificatesExpiring, metav1.ConditionTrue, "ExpiresSoon", "apiserver.crt expires")
		}), "ExpiresSoon: apiserver.crt expires"},
		"nothing, on a host whose packages are broken": {reported(func(s *v1alpha1.MachineStatus) {
			s.Conditions = condition(v1alpha1.ConditionPackagesBroken, metav1.ConditionTrue, "PackageDBBroken", "kubelet")
		}), "PackageDBBroken: kubelet"},
		"a gate": {reported(func(s *v1alpha1.MachineStatus) {
			s.Conditions = condition(v1alpha1.ConditionWaiting, metav1.ConditionTrue, "BudgetExhausted", "1 of 1 unavailable")
		}), "BudgetExhausted: 1 of 1 unavailable"},
		"a step": {reported(func(s *v1alpha1.MachineStatus) {
			s.LastOperation = &v1alpha1.Operation{State: v1alpha1.OperationProcessing, Step: "InstallPackages", StepsDone: 1, StepsTotal: 4}
		}), "step 2 of 4: InstallPackages"},
		"its last step done": {reported(func(s *v1alpha1.MachineStatus) {
			s.LastOperation = &v1alpha1.Operation{State: v1alpha1.OperationProcessing, Step: "WaitForNode", StepsDone: 16, StepsTotal: 16}
		}), "step 16 of 16: WaitForNode"},
		"its health": {reported(func(s *v1alpha1.MachineStatus) {
			s.Conditions = append(condition(v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "UpToDate", "all well"),
				condition(v1alpha1.ConditionHealthy, metav1.ConditionFalse, "NodeNotReady", "Node w1 is not Ready")...)
		}), "NodeNotReady: Node w1 is not Ready"},
		"its health before a change, once verifying": {reported(func(s *v1alpha1.MachineStatus) {
			s.Phase = v1alpha1.PhaseVerifying
			s.Conditions = append(condition(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "Outdated", "kubelet v1.36.3, wants v1.37.2"),
				condition(v1alpha1.ConditionHealthy, metav1.ConditionUnknown, "NodeNotReady", "Node w1 is not Ready")...)
		}), "NodeNotReady: Node w1 is not Ready"},
		"a change before its health": {reported(func(s *v1alpha1.MachineStatus) {
			s.Conditions = append(condition(v1alpha1.ConditionHealthy, metav1.ConditionFalse, "NodeNotReady", "Node w1 is not Ready"),
				condition(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "Outdated", "kubelet v1.36.3, wants v1.37.2")...)
		}), "Outdated: kubelet v1.36.3, wants v1.37.2"},
		"its host": {reported(func(s *v1alpha1.MachineStatus) {
			s.HostFailure = &v1alpha1.Failure{Reason: "VersionNotFound", Message: "no source has v1.99.0"}
		}), "VersionNotFound: no source has v1.99.0"},
		"the drain that runs, not the one before": {reported(func(s *v1alpha1.MachineStatus) {
			s.RolloutFailure = &v1alpha1.RolloutFailure{Class: "DrainBlocked", Failure: v1alpha1.Failure{Reason: "PDBOverlap", Message: "two budgets"}}
			s.Conditions = append(condition(v1alpha1.ConditionDrained, metav1.ConditionFalse, "Draining", "EvictionBlocked by budget web"),
				condition(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "Draining", "EvictionBlocked by budget web")...)
		}), "Draining: EvictionBlocked by budget web"},
		"the hop that is staged, not the drain before": {reported(func(s *v1alpha1.MachineStatus) {
			s.RolloutFailure = &v1alpha1.RolloutFailure{Class: "DrainBlocked", Failure: v1alpha1.Failure{Reason: "PDBOverlap", Message: "two budgets"}}
			s.Conditions = condition(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "Staging", "the host stages")
		}), "Staging: the host stages"},
		"the drain that runs, also with an override": {reported(func(s *v1alpha1.MachineStatus) {
			s.Conditions = append(condition(v1alpha1.ConditionOverridden, metav1.ConditionTrue, "FieldsOverridden", "spec.drain"),
				condition(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "Draining", "1 pod left")...)
		}), "Draining: 1 pod left"},
		"the work, not an older failure of the host": {reported(func(s *v1alpha1.MachineStatus) {
			s.HostFailure = &v1alpha1.Failure{Reason: "SourceUnavailable", Message: "no answer"}
			s.Conditions = condition(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "Applying", "the host has the grant")
		}), "Applying: the host has the grant"},
		"its owner, before an override": {reported(func(s *v1alpha1.MachineStatus) {
			s.Conditions = append(condition(v1alpha1.ConditionOverridden, metav1.ConditionTrue, "FieldsOverridden", "spec.drain"),
				condition(v1alpha1.ConditionHeld, metav1.ConditionTrue, "HoldFile", "/etc/refit/hold")...)
		}), "HoldFile: /etc/refit/hold"},
		"its agent": {&v1alpha1.Machine{}, "AgentSilent: the agent of this host has never reported"},
		"a change": {reported(func(s *v1alpha1.MachineStatus) {
			s.Conditions = condition(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "Outdated", "kubelet v1.36.3, wants v1.37.2")
		}), "Outdated: kubelet v1.36.3, wants v1.37.2"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, status.WaitsFor(tc.machine, status.Coordinator{})) })
	}
}

func TestTheTablesShowPoolsAndMachines(t *testing.T) {
	m := reported(func(s *v1alpha1.MachineStatus) {
		s.Phase = v1alpha1.PhaseOutdated
		s.Versions = &v1alpha1.ObservedVersions{Kubelet: "v1.36.3", ContainerRuntime: &v1alpha1.ObservedRuntime{Text: "containerd://1.7.35"}}
	})
	m.Name, m.Spec.Roles = "w1", []v1alpha1.Role{v1alpha1.RoleWorker}
	m.Spec.Versions = &v1alpha1.Versions{Kubelet: "v1.37.2", ContainerRuntime: &v1alpha1.ContainerRuntime{Name: "containerd", Version: "2.4.2"}}
	d := v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
	d.Spec.Template.Spec.Versions = &v1alpha1.Versions{ContainerRuntime: m.Spec.Versions.ContainerRuntime, Etcd: "v3.7.0"}
	d.Status = v1alpha1.MachineDeploymentStatus{Machines: 2, UpToDate: 1, Ready: 2, Conditions: condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, "RollingOut", "1 of 2 done")}
	var out bytes.Buffer
	require.NoError(t, status.Print(&out, []v1alpha1.MachineDeployment{d}, []v1alpha1.Machine{*m}, status.Coordinator{}))
	var lines [][]string
	for _, l := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		lines = append(lines, strings.Fields(l))
	}
	assert.Equal(t, []string{"workers", "2", "1", "2", "0", "containerd=2.4.2,etcd=v3.7.0", "false", "RollingOut:", "1", "of", "2", "done"}, lines[1])
	assert.Equal(t, []string{"w1", "Worker", "Outdated", "v1.36.3", "-", "containerd://1.7.35", "v1.37.2,containerd=2.4.2"}, lines[4])
}

func TestAMessageOfSeveralLinesStaysInItsCell(t *testing.T) {
	m := reported(func(s *v1alpha1.MachineStatus) {
		s.HostFailure = &v1alpha1.Failure{Reason: "StepFailed", Message: "dpkg:\r\n\terror one\nerror two\vthree\ffour"}
	})
	m.Name = "w1"
	var out bytes.Buffer
	require.NoError(t, status.Print(&out, nil, []v1alpha1.Machine{*m}, status.Coordinator{}))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 2)
	assert.True(t, strings.HasSuffix(lines[1], "   StepFailed: dpkg:  error one error two three four"), lines[1])
}

func TestAMachineBeingDeletedIsShownAsSuch(t *testing.T) {
	deleted := func(change func(*v1alpha1.MachineStatus)) *v1alpha1.Machine {
		m := reported(change)
		m.Name, m.Finalizers, m.DeletionTimestamp = "w1", []string{v1alpha1.FinalizerMachine}, &metav1.Time{Time: time.Now()}
		m.Status.Phase = v1alpha1.PhaseWaiting
		return m
	}
	for name, tc := range map[string]struct {
		machine *v1alpha1.Machine
		want    string
	}{
		"whatever it waited for": {deleted(func(s *v1alpha1.MachineStatus) {
			s.Conditions = condition(v1alpha1.ConditionWaiting, metav1.ConditionTrue, "BudgetExhausted", "1 of 1 unavailable")
		}), "Deleting: held by its finalizers refit.dev/machine"},
		"and what holds it up": {deleted(func(s *v1alpha1.MachineStatus) {
			s.LastOperation = &v1alpha1.Operation{State: v1alpha1.OperationProcessing, Step: "InstallPackages", StepsDone: 1, StepsTotal: 4}
		}), "step 2 of 4: InstallPackages"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, status.WaitsFor(tc.machine, status.Coordinator{}))
			var out bytes.Buffer
			require.NoError(t, status.Print(&out, nil, []v1alpha1.Machine{*tc.machine}, status.Coordinator{}))
			assert.Regexp(t, `w1 +- +Deleting `, out.String())
		})
	}
}
