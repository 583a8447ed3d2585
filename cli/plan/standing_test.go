package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/plan"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// poolOf selects the machines of one label pool.
func poolOf(name, spec string) string {
	return "\n{apiVersion: refit.dev/v1alpha1, kind: MachineDeployment, metadata: {name: " + name + "}, spec: {selector: {matchLabels: {pool: " + name + "}}, template: {spec: {}}" + spec + "}}\n---"
}

// with adds lines to the status of a machine.
func with(machine, lines string) string {
	return strings.Replace(machine, "status:\n", "status:\n"+lines+"\n", 1)
}

func conditionOf(kind, state, reason, message string) string {
	return `{type: ` + kind + `, status: "` + state + `", reason: ` + reason + `, message: "` + message + `", lastTransitionTime: 2026-01-01T00:00:00Z}`
}

// ofControlPlane are facts to which more can be added.
func ofControlPlane(version string) string {
	return strings.TrimSuffix(controlPlaneFacts("cp", version, "3.6.4", ""), "---\n")
}

// said is the message of the finding with a reason.
func said(p preview.MachinePlan, reason string) string {
	for _, f := range p.Findings {
		if f.Reason == reason {
			return f.Message
		}
	}
	return ""
}

func TestAPlanIsShownWhateverTheStrategyOfThePool(t *testing.T) {
	cp := controlPlane("cp", "v1.37.2", "v1.37.2")
	for name, strategy := range map[string]string{
		"windows":          `{rollingUpdate: {windows: [{schedule: "0 22 * * *", duration: 6h, timeZone: UTC}]}}`,
		"a canary":         `{rollingUpdate: {canary: {count: 1}}}`,
		"Manual":           `{type: Manual}`,
		"a surge":          `{rollingUpdate: {maxSurge: 1}}`,
		"nothing is asked": `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, cp+worker("w1", "v1.36.3", "v1.37.2")+worker("w2", "v1.37.2", "v1.37.2")+poolOf("w", ", strategy: "+strategy), "", "w1", "w2")
			require.NoError(t, err)
			assert.Len(t, list.Items[0].Hops, 1)
			assert.Equal(t, preview.StateUpToDate, list.Items[1].State)
			assert.Empty(t, list.Refused())
		})
	}
}

func TestAHoldOfTheHostsOwnerIsTold(t *testing.T) {
	held := "  conditions: [" + conditionOf("Held", "True", "HoldFile", "The host's owner refuses grants with /etc/refit/hold; remove the file to go on: inventory") + "]"
	locked := "  conditions: [" + conditionOf("Held", "True", "PackageLockHeld", "No grant is taken: waiting for process 7 (apt-get)") + "]"
	free := "  conditions: [" + conditionOf("Held", "False", "NotHeld", "The host accepts grants") + "]"
	facts := ofControlPlane("v1.37.2") + "hold: {path: /etc/refit/hold, message: inventory}\n"
	for name, tc := range map[string]struct{ objects, facts, reason, says string }{
		"by the facts, with nothing to do": {controlPlane("cp", "v1.37.2", "v1.37.2"), facts, upgrade.FindingHeldByOwner, "inventory"},
		"by the status":                    {with(controlPlane("cp", "v1.36.3", "v1.37.2"), held), "", upgrade.FindingHeldByOwner, "inventory"},
		"by the status, with nothing to do": {with(controlPlane("cp", "v1.37.2", "v1.37.2"), held), "", upgrade.FindingHeldByOwner,
			"/etc/refit/hold"},
		"a package lock is another thing": {with(controlPlane("cp", "v1.36.3", "v1.37.2"), locked), "", "PackageLockHeld", "apt-get"},
		"one that is over":                {with(controlPlane("cp", "v1.36.3", "v1.37.2"), free), "", "", ""},
		"newer facts know better":         {with(controlPlane("cp", "v1.37.2", "v1.37.2"), held), controlPlaneFacts("cp", "v1.37.2", "3.6.4", ""), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, tc.objects, tc.facts)
			require.NoError(t, err)
			if tc.reason == "" {
				assert.NotContains(t, findings(list.Items[0]), upgrade.FindingHeldByOwner)
				return
			}
			assert.Contains(t, said(list.Items[0], tc.reason), tc.says)
		})
	}
}

func TestAMachineThatIsWorkedOnIsShownSo(t *testing.T) {
	const grant = "  grant: {id: g1, assignmentID: 1-a, planHash: h, epoch: 1}\n  accepted: {grantID: g1}\n"
	running := grant + "  lastOperation: {id: g1, type: Upgrade, state: Processing, step: InstallPackages, stepsDone: 2, stepsTotal: 9}"
	draining := "  conditions: [" + conditionOf("Drained", "False", "Draining", "m") + ", " + conditionOf("UpToDate", "False", "Draining", "pod web-1 is held by a budget") + "]"
	verifying := grant + "  lastOperation: {id: g1, type: Upgrade, state: Successful, step: Verify, stepsDone: 9, stepsTotal: 9}"
	failed := running + "\n  rolloutFailure: {class: ApplyFailed, reason: ApplyFailed, message: m, attempts: 1}"
	cp := controlPlane("cp", "v1.37.2", "v1.37.2")
	for name, tc := range map[string]struct {
		machine string
		state   preview.State
		says    string
	}{
		"it is changed":   {with(worker("w", "v1.36.3", "v1.37.2"), running), preview.StateInOperation, "Applying: step 3 of 9: InstallPackages"},
		"it is drained":   {with(worker("w", "v1.36.3", "v1.37.2"), draining), preview.StateInOperation, "Draining: pod web-1 is held by a budget"},
		"it is looked at": {with(worker("w", "v1.37.2", "v1.37.2"), verifying), preview.StateInOperation, "Verifying: "},
		"its kubelet is down in the middle of it": {with(worker("w", "Unknown", "v1.37.2"), running), preview.StateInOperation, "Applying: "},
		"nothing goes on":                         {worker("w", "v1.36.3", "v1.37.2"), preview.StatePending, ""},
		"it failed":                               {with(worker("w", "v1.36.3", "v1.37.2"), failed), preview.StateSidelined, ""},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, cp+tc.machine, "", "w")
			require.NoError(t, err)
			item := list.Items[0]
			assert.Equal(t, tc.state, item.State, "%+v", item.Refusal)
			assert.Contains(t, said(item, preview.FindingInOperation), tc.says)
			if tc.state == preview.StateInOperation {
				assert.Nil(t, item.Refusal, "what is seen in the middle of it is no refusal")
			}
		})
	}
}

func TestAPausedMachineIsToldWhichCertificatesLapse(t *testing.T) {
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	certificates := func(date string) string {
		return ofControlPlane("v1.36.3") + "certificates: [{path: /etc/kubernetes/pki/apiserver.crt, notAfter: " + date + "}, {path: /var/lib/kubelet/pki/kubelet.crt, notAfter: 2020-01-01T00:00:00Z}]\n"
	}
	paused := strings.Replace(controlPlane("cp", "v1.36.3", "v1.37.2"), "spec: {", "spec: {paused: true, ", 1)
	require.Contains(t, paused, "paused: true")
	reported := with(paused, "  conditions: ["+conditionOf("CertificatesExpiring", "True", "ExpiresSoon", "/etc/kubernetes/pki/apiserver.crt expires at 2026-12-20")+"]")
	pool := poolOf("c", ", paused: true")
	for name, tc := range map[string]struct{ objects, facts, reason, says string }{
		"the machine is paused":            {paused, certificates("2026-12-20T00:00:00Z"), upgrade.FindingCertificateExpiring, "the machine is paused, so no upgrade renews it: the certificate /etc/kubernetes/pki/apiserver.crt ends on 2026-12-20"},
		"kubeadm's renewal is skipped":     {paused, certificates("2026-12-20T00:00:00Z"), upgrade.FindingCertificateExpiring, "skipping upgrades also skips kubeadm's yearly renewal"},
		"its pool is paused":               {controlPlane("cp", "v1.36.3", "v1.37.2") + pool, certificates("2026-12-20T00:00:00Z"), upgrade.FindingCertificateExpiring, "the machine is paused"},
		"one has lapsed":                   {paused, certificates("2026-11-20T00:00:00Z"), upgrade.FindingCertificateExpired, "ended on 2026-11-20"},
		"the Machine reports it":           {reported, "", upgrade.FindingCertificateExpiring, "apiserver.crt expires at 2026-12-20"},
		"nothing is to be done":            {controlPlane("cp", "v1.36.3", "v1.36.3"), certificates("2026-12-20T00:00:00Z"), upgrade.FindingCertificateExpiring, "nothing is done to this host now"},
		"they are good for long":           {paused, certificates("2027-10-20T00:00:00Z"), "", ""},
		"an upgrade is on its way to them": {controlPlane("cp", "v1.36.3", "v1.37.2"), certificates("2026-12-20T00:00:00Z"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := &plan.Fleet{}
			require.NoError(t, fleet.AddObjects(read(t, tc.objects, plan.Kinds)))
			if tc.facts != "" {
				require.NoError(t, fleet.AddFacts(read(t, tc.facts, plan.FactsKinds)))
			}
			list, err := fleet.Plan(nil, now)
			require.NoError(t, err)
			if tc.reason == "" {
				for _, f := range list.Items[0].Findings {
					assert.NotContains(t, f.Message, "no upgrade renews it")
				}
				return
			}
			assert.Contains(t, said(list.Items[0], tc.reason), tc.says)
		})
	}
}

func TestWhatNobodyAppliesIsToldAlsoWhereNothingIsToBeDone(t *testing.T) {
	for _, seen := range []string{"v1.36.3", "v1.37.2"} {
		objects := strings.Replace(controlPlane("cp", seen, "v1.37.2"), "spec: {", "spec: {node: {labels: {rack: r1}}, ", 1)
		list, err := planned(t, objects, "")
		require.NoError(t, err)
		assert.Contains(t, said(list.Items[0], upgrade.FindingNodeIgnored), "spec.node is not applied")
	}
}

// A status that is given adds to what is known, and takes nothing from it.
func TestAMachineAmongTheFactsWipesNoStatus(t *testing.T) {
	cp, known := controlPlane("cp", "v1.37.2", "v1.37.2"), worker("w", "v1.36.3", "v1.37.2")
	of := func(status string) string {
		return "apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w}\nspec: {roles: [Worker]}\n" + status
	}
	for name, tc := range map[string]struct{ facts, kubelet, runtime, err string }{
		"none at all":          {of(""), "", "", "stdin:1: status: this Machine has no status, so it says nothing of its host"},
		"an empty one":         {of("status: {}\n"), "", "", "this Machine has no status"},
		"one of another thing": {of("status: {host: {machineID: id-w}}\n"), "v1.36.3", "2.1.4", ""},
		"one version of two":   {of("status: {versions: {kubelet: v1.36.4}}\n"), "v1.36.4", "2.1.4", ""},
		"a whole one":          {of("status: {versions: {kubelet: v1.36.4, containerRuntime: {name: containerd, version: 2.1.5}}}\n"), "v1.36.4", "2.1.5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, cp+known, tc.facts, "w")
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.kubelet, list.Items[0].From.Kubelet)
			assert.Equal(t, tc.runtime, list.Items[0].From.ContainerRuntime.Version)
		})
	}
	t.Run("nor does a file that is laid over the cluster", func(t *testing.T) {
		fleet, live := &plan.Fleet{}, v1alpha1.Machine{}
		require.NoError(t, read(t, known, plan.Kinds)[0].Decode(&live))
		live.Namespace = "refit"
		fleet.AddLive([]v1alpha1.Machine{live}, nil, nil)
		require.NoError(t, fleet.AddObjects(read(t, of(""), plan.Kinds)))
		list, err := fleet.Plan(nil, noDate)
		require.NoError(t, err)
		assert.Equal(t, "v1.36.3", list.Items[0].From.Kubelet)
	})
}

func TestWhatAHostRecordedItselfPermitsToGoBack(t *testing.T) {
	objects := controlPlane("cp", "v1.36.3", "v1.36.3") + worker("w", "v1.36.3", "v1.36.1")
	facts := strings.NewReplacer("NAME", "w", "controlPlane: {apiServer: v1.36.3, controllerManager: v1.36.3, scheduler: v1.36.3, etcd: 3.6.4}\n", "").
		Replace(strings.TrimSuffix(controlPlaneFacts("w", "v1.36.3", "3.6.4", ""), "---\n"))
	require.NotContains(t, facts, "controlPlane")
	for name, tc := range map[string]struct {
		record  string
		refused bool
		finding bool
	}{
		"it ran that set":         {"record: [{kubelet: v1.36.1}]\n", false, false},
		"it ran another":          {"record: [{kubelet: v1.36.0}]\n", true, false},
		"it has no record":        {"", true, false},
		"it is of another host's": {"problems: [{field: record, message: the state is of the machine with id m1}]\n", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, objects, facts+tc.record, "w")
			require.NoError(t, err)
			item := list.Items[0]
			if tc.refused {
				require.NotNil(t, item.Refusal)
				assert.Equal(t, upgrade.ReasonDowngradeRefused, item.Refusal.Reason)
			} else {
				assert.Nil(t, item.Refusal)
				assert.Len(t, item.Hops, 1)
			}
			assert.Equal(t, tc.finding, strings.Contains(said(item, preview.FindingRecordIgnored), "of the machine with id m1"))
		})
	}
}
