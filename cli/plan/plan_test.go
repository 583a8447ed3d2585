package plan_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/plan"
	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/manifest/crd"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func read(t *testing.T, text string, kinds []string) []manifest.Object {
	t.Helper()
	objects, err := manifest.Read([]string{"-"}, manifest.Options{Namespace: "refit", Kinds: kinds, Check: crd.Check, Stdin: strings.NewReader(text)})
	require.NoError(t, err)
	return objects
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(text)
}

// planned plans objects with facts; "" is without.
func planned(t *testing.T, objects, facts string, names ...string) (preview.PlanList, error) {
	t.Helper()
	fleet := &plan.Fleet{}
	require.NoError(t, fleet.AddObjects(read(t, objects, plan.Kinds)))
	if facts != "" {
		if err := fleet.AddFacts(read(t, facts, plan.FactsKinds)); err != nil {
			return preview.PlanList{}, err
		}
	}
	return fleet.Plan(names, noDate)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "make golden writes it")
	assert.Equal(t, string(want), string(got), "make golden rewrites it; read the diff")
}

func TestAFleetIsPlannedWholeAndInOrder(t *testing.T) {
	list, err := planned(t, testdata(t, "objects.yaml"), testdata(t, "facts.yaml"))
	require.NoError(t, err)
	var table, wide bytes.Buffer
	require.NoError(t, preview.Print(&table, list, false))
	require.NoError(t, preview.Print(&wide, list, true))
	golden(t, "table.golden", table.Bytes())
	golden(t, "wide.golden", wide.Bytes())
	text, err := json.MarshalIndent(list, "", "  ")
	require.NoError(t, err)
	golden(t, "json.golden", append(text, '\n'))

	again, err := planned(t, testdata(t, "objects.yaml"), testdata(t, "facts.yaml"))
	require.NoError(t, err)
	assert.Equal(t, list, again, "planning is deterministic")
}

// indexes answers the agent from the same indexes as the facts have.
type indexes struct{ facts upgrade.Facts }

func (i indexes) Candidates(_ context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	found, _ := i.facts.Offered(request)
	return found, nil
}

func TestTheHashIsWhatTheAgentWouldPublish(t *testing.T) {
	list, err := planned(t, testdata(t, "objects.yaml"), testdata(t, "facts.yaml"))
	require.NoError(t, err)
	all := map[string]upgrade.Facts{}
	for _, o := range read(t, testdata(t, "facts.yaml"), plan.FactsKinds) {
		var f upgrade.Facts
		require.NoError(t, o.Decode(&f))
		all[f.Node.Name] = f
	}
	for _, item := range list.Items[:2] {
		hop := item.Hops[0]
		m := v1alpha1.Machine{Spec: v1alpha1.MachineSpec{Roles: item.Roles, MachineTemplateSpec: v1alpha1.MachineTemplateSpec{Versions: item.To}}}
		published, err := planning.Draft(t.Context(), indexes{all[item.Machine]}, upgrade.PlanInput{
			Machine: item.Machine, Spec: m.Spec, Facts: all[item.Machine],
			Assignment: v1alpha1.Assignment{ID: "7-of-the-coordinator", Type: v1alpha1.OperationUpgrade, Target: hop.Target, KubeadmRole: hop.KubeadmRole, Skew: hop.Skew},
		})
		require.NoError(t, err)
		require.NotEmpty(t, item.Hash)
		assert.Equal(t, published.Hash, item.Hash, item.Machine)
		assert.Equal(t, published.Disruption, hop.Disruption)
		assert.Len(t, item.Steps, len(published.Steps))
	}
	assert.Empty(t, list.Items[2].Hash, "without facts it is not known what would be published")
}

const machineWithStatus = `
apiVersion: refit.dev/v1alpha1
kind: Machine
metadata: {name: NAME, labels: {pool: POOL}}
spec: {roles: [ROLE], versions: {kubelet: WISH}}
status:
  host: {machineID: id-NAME}
  versions: {kubelet: SEEN, kubeadm: SEEN, controlPlane: {apiServer: API, controllerManager: API, scheduler: API}, containerRuntime: {name: containerd, version: 2.1.4, text: "containerd://2.1.4"}}
---`

func worker(name, seen, wish string) string {
	text := strings.NewReplacer("NAME", name, "POOL", "w", "ROLE", "Worker", "WISH", wish, "SEEN", seen).Replace(machineWithStatus)
	return strings.Replace(text, "controlPlane: {apiServer: API, controllerManager: API, scheduler: API}, ", "", 1)
}

func controlPlane(name, seen, wish string) string {
	text := strings.NewReplacer("NAME", name, "POOL", "c", "ROLE", "ControlPlane", "WISH", wish, "SEEN", seen, "API", seen).Replace(machineWithStatus)
	return strings.Replace(text, "{kubelet: "+wish+"}", "{kubelet: "+wish+", controlPlane: "+wish+"}", 1)
}

// roleless runs a control plane at its wish, and is called a worker.
func roleless(name, seen string) string {
	text := strings.Replace(controlPlane(name, seen, seen), "[ControlPlane]", "[Worker]", 1)
	return strings.Replace(text, ", controlPlane: "+seen+"}", "}", 1)
}

func labelledNode(name string) string {
	return "\n{apiVersion: v1, kind: Node, metadata: {name: " + name + ", labels: {node-role.kubernetes.io/control-plane: \"\"}}, status: {nodeInfo: {kubeletVersion: v1.36.3}}}\n---\n"
}

// labelled is called a worker, has no status, and its Node is one of a control plane.
func labelled(name string) string {
	return "\n{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: " + name + "}, spec: {roles: [Worker]}}\n---" + labelledNode(name)
}

func TestTheWholeFleetCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		objects string
		state   preview.State
		reason  string
		hops    int
	}{
		"a worker follows its control plane":                    {controlPlane("cp", "v1.36.3", "v1.37.2") + worker("w", "v1.36.3", "v1.37.2"), preview.StatePending, "", 1},
		"a worker whose control plane stays":                    {controlPlane("cp", "v1.36.3", "v1.36.3") + worker("w", "v1.36.3", "v1.37.2"), preview.StateRefused, upgrade.ReasonWaitingForControlPlane, 0},
		"a worker whose control plane cannot":                   {controlPlane("cp", "v1.37.2", "v1.36.3") + worker("w", "v1.37.2", "v1.38.0"), preview.StateRefused, upgrade.ReasonWaitingForControlPlane, 0},
		"a worker without any control plane":                    {worker("w", "v1.36.3", "v1.37.2"), preview.StateRefused, upgrade.ReasonSkewUnknown, 0},
		"a worker that would go back":                           {controlPlane("cp", "v1.37.2", "v1.37.2") + worker("w", "v1.37.2", "v1.36.3"), preview.StateRefused, upgrade.ReasonDowngradeRefused, 0},
		"a worker that is there":                                {controlPlane("cp", "v1.37.2", "v1.37.2") + worker("w", "v1.37.2", "v1.37.2"), preview.StateUpToDate, "", 0},
		"a worker that reports a vendor's version":              {controlPlane("cp", "v1.37.2", "v1.37.2") + worker("w", "v1.37.2-eks-a5ec690", "v1.37.2"), preview.StateUpToDate, "", 0},
		"a worker that reports no version":                      {controlPlane("cp", "v1.37.2", "v1.37.2") + worker("w", "Unknown", "v1.37.2"), preview.StateRefused, upgrade.ReasonVersionUnknown, 0},
		"a worker that is paused":                               {controlPlane("cp", "v1.37.2", "v1.37.2") + strings.Replace(worker("w", "v1.36.3", "v1.37.2"), "spec: {", "spec: {paused: true, ", 1), preview.StateSidelined, "", 0},
		"a worker whose agent has never reported":               {controlPlane("cp", "v1.37.2", "v1.37.2") + "\n{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: w}, spec: {roles: [Worker]}}\n", preview.StateRefused, upgrade.ReasonNotReported, 0},
		"a worker whose agent has never reported, with a wish":  {controlPlane("cp", "v1.37.2", "v1.37.2") + "\n{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: w}, spec: {roles: [Worker], versions: {kubelet: v1.37.2}}}\n", preview.StateRefused, upgrade.ReasonNotReported, 0},
		"a Node without a Machine that is a control plane":      {worker("w", "v1.36.3", "v1.37.2") + "\n{apiVersion: v1, kind: Node, metadata: {name: x, labels: {node-role.kubernetes.io/control-plane: \"\"}}, status: {nodeInfo: {kubeletVersion: v1.37.2}}}\n", preview.StateRefused, upgrade.ReasonVersionUnknown, 0},
		"a control plane whose role was forgotten":              {worker("x", "v1.37.2", "v1.37.2") + roleless("w", "v1.36.3"), preview.StateRefused, upgrade.ReasonRoleMismatch, 0},
		"a worker next to one whose role was forgotten":         {roleless("x", "v1.36.3") + worker("w", "v1.36.3", "v1.37.2"), preview.StateRefused, upgrade.ReasonWaitingForControlPlane, 0},
		"a Node without a Machine that has the old label":       {controlPlane("cp", "v1.37.2", "v1.37.2") + worker("w", "v1.36.3", "v1.37.2") + "\n{apiVersion: v1, kind: Node, metadata: {name: x, labels: {node-role.kubernetes.io/master: \"\"}}, status: {nodeInfo: {kubeletVersion: v1.37.2}}}\n", preview.StateRefused, upgrade.ReasonVersionUnknown, 0},
		"a worker next to a labelled Machine without a status":  {controlPlane("cp", "v1.37.2", "v1.37.2") + worker("w", "v1.36.3", "v1.37.2") + labelled("x"), preview.StateRefused, upgrade.ReasonVersionUnknown, 0},
		"a labelled Machine without role and status":            {controlPlane("cp", "v1.37.2", "v1.37.2") + labelled("w"), preview.StateRefused, upgrade.ReasonRoleMismatch, 0},
		"a labelled Machine that is there":                      {controlPlane("cp", "v1.37.2", "v1.37.2") + worker("w", "v1.37.2", "v1.37.2") + labelledNode("w"), preview.StateRefused, upgrade.ReasonRoleMismatch, 0},
		"a worker next to one that reports nothing but Unknown": {controlPlane("cp", "v1.37.2", "v1.37.2") + worker("w", "v1.36.3", "v1.37.2") + strings.Replace(worker("x", "v1.36.3", "v1.36.3"), "versions: {kubelet: v1.36.3, ku", "versions: {controlPlane: {apiServer: Unknown, controllerManager: Unknown, scheduler: Unknown}, kubelet: v1.36.3, ku", 1), preview.StateRefused, upgrade.ReasonVersionUnknown, 0},
		"a worker whose control plane has only a status":        {worker("w", "v1.36.3", "v1.37.2") + "\n{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: hosted}, spec: {roles: [ControlPlane], availability: OutOfService}, status: {versions: {controlPlane: {apiServer: v1.37.2}}}}\n", preview.StatePending, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, tc.objects, "", "w")
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			got := list.Items[0]
			assert.Equal(t, tc.state, got.State, "%+v %+v", got.Refusal, got.Findings)
			assert.Len(t, got.Hops, tc.hops)
			if tc.reason == "" {
				assert.Nil(t, got.Refusal)
				assert.Empty(t, list.Refused())
				return
			}
			require.NotNil(t, got.Refusal)
			assert.Equal(t, tc.reason, got.Refusal.Reason, got.Refusal.Message)
			assert.NotEmpty(t, got.Refusal.Message)
			assert.Equal(t, []string{"w"}, list.Refused())
			assert.Equal(t, v1alpha1.DisruptionNone, got.Disruption)
		})
	}
}

func TestThreeControlPlanesGoFirstOneAfterAnother(t *testing.T) {
	var objects string
	for _, name := range []string{"cp-1", "cp-2", "cp-3"} {
		objects += controlPlane(name, "v1.36.3", "v1.37.2")
	}
	list, err := planned(t, objects+worker("a-worker", "v1.36.3", "v1.37.2"), "")
	require.NoError(t, err)
	var order []string
	for _, item := range list.Items {
		order = append(order, item.Machine)
		assert.LessOrEqual(t, item.Drains, len(item.Hops))
	}
	assert.Equal(t, []string{"cp-1", "cp-2", "cp-3", "a-worker"}, order)
	assert.Equal(t, v1alpha1.KubeadmFirst, list.Items[0].Hops[0].KubeadmRole)
	assert.Equal(t, v1alpha1.KubeadmOther, list.Items[1].Hops[0].KubeadmRole)
	assert.Equal(t, []int{2, 2, 1, 1}, []int{list.Items[0].Drains, list.Items[1].Drains, list.Items[2].Drains, list.Items[3].Drains})
}

func factsOf(hostname, node, id string) string {
	text := "apiVersion: facts.refit.dev/v1\nkind: Facts\nhost: {hostname: " + hostname + ", machineID: " + id + "}\nos: {id: debian, family: apt}\nreboot: {}\npackages: {manager: apt}\nkubelet: {running: v1.36.3}\n"
	if node != "" {
		text += "node: {name: " + node + "}\n"
	}
	return text + "---\n"
}

func TestFactsFindTheirMachine(t *testing.T) {
	objects := worker("w1", "v1.36.3", "v1.37.2") + worker("w2", "v1.36.3", "v1.37.2")
	for name, tc := range map[string]struct{ facts, want string }{
		"by the node's name":                     {factsOf("w2", "w1", "id-w2"), ""},
		"by the machine id":                      {factsOf("h", "", "id-w1"), ""},
		"by the hostname":                        {factsOf("w1", "", "x"), ""},
		"by the hostname up to its first dot":    {factsOf("w1.example.org", "", "x"), ""},
		"by nothing":                             {factsOf("h", "other", "x"), "stdin:3: host: no Machine belongs to these facts: none is named after h or other"},
		"one Machine has two":                    {factsOf("w1", "", "x") + factsOf("w1", "", "x"), "stdin:11: host: these are facts of Machine w1, and so are those at stdin:1: keep one"},
		"the status of a Machine":                {worker("w1", "v1.36.3", "v1.37.2"), ""},
		"the status of a Machine that is no one": {worker("w9", "v1.36.3", "v1.37.2"), "stdin:4: metadata.name: there is no Machine refit/w9 that this status could be of"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, objects, tc.facts)
			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				assert.True(t, manifest.Invalid(err))
				return
			}
			require.NoError(t, err)
			assert.Len(t, list.Items, 2)
		})
	}
}

func TestARoleThatTheFactsContradictIsBadInput(t *testing.T) {
	_, err := planned(t, "apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w1}\nspec:\n  roles: [ControlPlane]\n", factsOf("w1", "", "x"))
	require.ErrorContains(t, err, "stdin:5: spec.roles: ControlPlane is not what this host is")
	_, err = planned(t, "apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w1}\nspec:\n  roles: [ControlPlane]\n", strings.Replace(factsOf("w1", "", "x"), "---\n", "problems: [{field: controlPlane, message: cannot be read}]\n", 1))
	require.NoError(t, err, "what could not be looked at contradicts nothing")
}

// What the facts of one host leave open about its API server holds up the kubelets of all.
func TestFactsThatLeaveAnAPIServerOpenHoldUpKubelets(t *testing.T) {
	objects := controlPlane("cp", "v1.37.2", "v1.37.2") + worker("w", "v1.36.3", "v1.37.2") + worker("x", "v1.36.3", "v1.36.3")
	for name, tc := range map[string]struct{ more, reason string }{
		"a worker like any other":      {"", ""},
		"a manifest without an answer": {"controlPlane: {manifests: {kube-apiserver: v1.36.3}}\n", upgrade.ReasonVersionUnknown},
		"a static pod":                 {"staticPods: [{path: /srv/pods/a.json, namespace: kube-system, name: kube-apiserver}]\n", upgrade.ReasonVersionUnknown},
		"a probe that failed":          {"problems: [{field: controlPlane, message: cannot be read}]\n", upgrade.ReasonVersionUnknown},
		"etcd alone":                   {"controlPlane: {etcd: 3.6.4, manifests: {etcd: 3.6.4-0}}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, objects, strings.Replace(factsOf("x", "x", "id-x"), "---\n", tc.more, 1), "w", "x")
			require.NoError(t, err)
			require.Len(t, list.Items, 2)
			w, x := list.Items[0], list.Items[1]
			if w.Machine != "w" {
				w, x = x, w
			}
			if tc.reason == "" {
				assert.Nil(t, w.Refusal)
				assert.Equal(t, preview.StateUpToDate, x.State)
				return
			}
			require.NotNil(t, w.Refusal)
			assert.Equal(t, tc.reason, w.Refusal.Reason)
			assert.Contains(t, w.Refusal.Message, "x")
		})
	}
}

func TestWhatRepositoriesOfferIsNeverInvented(t *testing.T) {
	facts := strings.ReplaceAll(testdata(t, "facts.yaml"), "v1.37/deb/\n    suites", "v1.99/deb/\n    suites")
	list, err := planned(t, testdata(t, "objects.yaml"), facts, "cp-1")
	require.NoError(t, err)
	cp := list.Items[0]
	require.Nil(t, cp.Refusal)
	assert.Empty(t, cp.Hash)
	assert.Equal(t, v1alpha1.DisruptionDrain, cp.Disruption)
	require.NotEmpty(t, cp.Findings)
	assert.Equal(t, preview.FindingCandidatesUnknown, cp.Findings[0].Reason)
	assert.Contains(t, cp.Findings[0].Message, "https://pkgs.example/v1.37/deb/")
	assert.Contains(t, cp.Findings[0].Message, "refit-agent facts --minor v1.37")
	for _, step := range cp.Steps {
		for _, change := range step.Packages {
			assert.Empty(t, change.SHA256)
		}
	}
}

func TestAHalfInstalledRuntimeIsWaitedForAndNothingElseIsSaid(t *testing.T) {
	facts := strings.ReplaceAll(testdata(t, "facts.yaml"), "{name: containerd, version: 1.7.35-1, state: installed}", "{name: containerd, version: 1.7.35-1, state: half-configured}")
	list, err := planned(t, testdata(t, "objects.yaml"), strings.ReplaceAll(facts, "  holds: ", "  broken: [containerd]\n  holds: "), "worker-1", "cp-1")
	require.NoError(t, err)
	require.NotNil(t, list.Items[0].Refusal)
	assert.Equal(t, upgrade.ReasonPackageDBBroken, list.Items[0].Refusal.Reason)
	assert.Empty(t, list.Items[0].Findings, "packages that are not looked for are not missed")
}

func TestAVersionThatNobodyOffersIsRefusedAndHoldsUpWhoWaitsForIt(t *testing.T) {
	objects := strings.ReplaceAll(testdata(t, "objects.yaml"), "v1.37.2", "v1.37.9")
	list, err := planned(t, objects, testdata(t, "facts.yaml"))
	require.NoError(t, err)
	reasons := map[string]string{}
	for _, item := range list.Items {
		if item.Refusal != nil {
			reasons[item.Machine] = item.Refusal.Reason
		}
	}
	assert.Equal(t, map[string]string{"cp-1": upgrade.ReasonVersionNotFound, "worker-1": upgrade.ReasonWaitingForControlPlane}, reasons)
}

func TestOnlyWhatIsAskedForIsShown(t *testing.T) {
	objects, facts := testdata(t, "objects.yaml"), testdata(t, "facts.yaml")
	for name, tc := range map[string]struct{ ask, want []string }{
		"a machine":       {[]string{"worker-1"}, []string{"worker-1"}},
		"a pool":          {[]string{"machinedeployment/workers"}, []string{"worker-1", "worker-2"}},
		"both":            {[]string{"machd/control-plane", "mach/worker-2"}, []string{"cp-1", "worker-2"}},
		"no such machine": {[]string{"worker-9"}, nil},
		"no such pool":    {[]string{"machinedeployment/x"}, nil},
		"no such kind":    {[]string{"pod/x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, objects, facts, tc.ask...)
			if tc.want == nil {
				require.ErrorContains(t, err, tc.ask[0]+" is not there")
				return
			}
			require.NoError(t, err)
			var got []string
			for _, item := range list.Items {
				got = append(got, item.Machine)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// history is a successful operation that began at a version.
func history(machine, from string) string {
	return strings.Replace(machine, "status:\n", "status:\n  history: [{id: h, type: Upgrade, state: Successful, from: {kubelet: "+from+"}}]\n", 1)
}

func TestTheRecordOfAnotherHostPermitsNoDowngrade(t *testing.T) {
	whole := controlPlane("cp", "v1.37.2", "v1.37.2") + history(worker("w1", "v1.37.2", "v1.36.1"), "v1.36.1")
	for name, tc := range map[string]struct {
		id, reported string
		finding      string
		says         string
	}{
		"the host that ran it":     {"id-w1", "id-w1", "", ""},
		"another with its name":    {"id-new", "id-w1", preview.FindingHostReplaced, "id-new"},
		"one that has none to say": {"\"\"", "id-w1", preview.FindingHostUnproven, "give facts and a status that have the id"},
		"a status that has none":   {"id-w1", "\"\"", preview.FindingHostUnproven, "id-w1"},
		"neither has any":          {"\"\"", "\"\"", preview.FindingHostUnproven, "permits no lower version"},
	} {
		objects := strings.Replace(whole, "machineID: id-w1", "machineID: "+tc.reported, 1)
		t.Run(name, func(t *testing.T) {
			facts := strings.Replace(factsOf("w1", "w1", tc.id), "{running: v1.36.3}", "{running: v1.37.2, installed: v1.37.2}", 1)
			facts = strings.Replace(facts, "{manager: apt}", "{manager: apt, installed: [{name: kubelet, version: 1.37.2-1.1}], sources: [{file: /etc/apt/sources.list, uri: https://mirror.example, provides: [kubelet]}]}", 1)
			list, err := planned(t, objects, facts, "w1")
			require.NoError(t, err)
			item := list.Items[0]
			if tc.finding == "" {
				assert.Equal(t, preview.StatePending, item.State, "%+v %+v", item.Refusal, item.Findings)
				return
			}
			require.NotNil(t, item.Refusal)
			assert.Equal(t, upgrade.ReasonDowngradeRefused, item.Refusal.Reason)
			require.NotEmpty(t, item.Findings)
			assert.Equal(t, tc.finding, item.Findings[0].Reason)
			assert.Contains(t, item.Findings[0].Message, tc.says)
		})
	}
}

// controlPlaneFacts are facts of a control-plane host whose repository offers everything, and which says so without a minor.
func controlPlaneFacts(name, version, etcd, flags string) string {
	text := `apiVersion: facts.refit.dev/v1
kind: Facts
host: {hostname: NAME, machineID: id-NAME}
os: {id: debian, family: apt, cgroupVersion: 2}
reboot: {}
node: {name: NAME}
kubelet: {running: VERSION, installed: VERSION, active: true, flagSources: {/var/lib/kubelet/kubeadm-flags.env: 'KUBELET_KUBEADM_ARGS="FLAGS"'}}
kubeadm: {installed: VERSION}
containerRuntime: {name: containerd, running: 2.1.4, installed: 2.1.4, ready: true}
controlPlane: {apiServer: VERSION, controllerManager: VERSION, scheduler: VERSION, etcd: ETCD}
packages:
  manager: apt
  holds: [kubelet]
  installed: [{name: kubeadm, version: UPSTREAM-1.1}, {name: kubelet, version: UPSTREAM-1.1}, {name: containerd, version: 2.1.4-1}]
  sources: [{file: /etc/apt/sources.list, uri: "https://mirror.example", suites: [/], provides: [kubeadm, kubelet]}]
---
`
	return strings.NewReplacer("NAME", name, "VERSION", version, "UPSTREAM", strings.TrimPrefix(version, "v"), "ETCD", etcd, "FLAGS", flags).Replace(text)
}

func findings(p preview.MachinePlan) []string {
	var out []string
	for _, f := range p.Findings {
		out = append(out, f.Reason)
	}
	return out
}

func TestAFlagThatKubeadmTakesOutInAnEarlierHopRefusesNoLaterOne(t *testing.T) {
	objects := controlPlane("cp-1", "v1.34.4", "v1.35.2") + controlPlane("cp-2", "v1.34.4", "v1.35.2")
	for name, tc := range map[string]struct{ flags, refused string }{
		"one that kubeadm takes out": {"--pod-infra-container-image=registry.k8s.io/pause:3.10 --v=2", ""},
		"one that it leaves":         {"--pod-infra-container-image=registry.k8s.io/pause:3.10 --register-schedulable=true", upgrade.FindingFlagRemoved},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, objects, controlPlaneFacts("cp-1", "v1.34.4", "3.6.4", tc.flags)+controlPlaneFacts("cp-2", "v1.34.4", "3.6.4", "--v=2"))
			require.NoError(t, err)
			first := list.Items[0]
			require.Equal(t, "cp-1", first.Machine)
			if tc.refused != "" {
				require.NotNil(t, first.Refusal)
				assert.Equal(t, tc.refused, first.Refusal.Reason)
				assert.NotContains(t, first.Refusal.Message, "pod-infra", "kubeadm has taken it out")
				return
			}
			require.Nil(t, first.Refusal)
			require.Len(t, first.Hops, 2)
			assert.EqualValues(t, "v1.35.2", first.Hops[1].Target.Kubelet)
		})
	}
}

// lifted are the packages whose hold some hops lift.
func lifted(hops []preview.Hop) []string {
	var out []string
	for _, hop := range hops {
		for _, step := range hop.Steps {
			for _, change := range step.Packages {
				if step.Kind == upgrade.StepUnholdPackages {
					out = append(out, change.Name)
				}
			}
		}
	}
	return out
}

func TestAHoldThatAnEarlierHopSetsIsLiftedInTheLaterOne(t *testing.T) {
	objects := controlPlane("cp-1", "v1.35.4", "v1.36.2") + controlPlane("cp-2", "v1.35.4", "v1.36.2")
	objects = strings.Replace(objects, "kubelet: v1.36.2, controlPlane: v1.36.2", "kubelet: v1.36.2, controlPlane: v1.37.2", 2)
	objects += controlPlane("peer", "v1.36.2", "v1.36.2")
	list, err := planned(t, objects, controlPlaneFacts("cp-1", "v1.35.4", "3.6.4", ""), "cp-1")
	require.NoError(t, err)
	hops := list.Items[0].Hops
	require.GreaterOrEqual(t, len(hops), 2, "%+v", list.Items[0].Refusal)
	assert.NotContains(t, lifted(hops[:1]), "kubeadm", "it is not on hold yet")
	assert.Contains(t, lifted(hops[1:]), "kubeadm")
}

func TestEtcdThatAnEarlierHopBringsIsNotJudgedBeforeItIsThere(t *testing.T) {
	for name, tc := range map[string]struct{ now, refused string }{
		"a hop before brings another": {"v1.32.3", ""},
		"it is what is there":         {"v1.33.1", upgrade.FindingEtcdTooOld},
	} {
		t.Run(name, func(t *testing.T) {
			objects := strings.Replace(controlPlane("cp-1", tc.now, "v1.34.1"), "kubelet: v1.34.1", "kubelet: v1.33.9", 1) + withEtcd("peer", "v1.33.9", "3.5.26", "v1.33.9")
			list, err := planned(t, objects, controlPlaneFacts("cp-1", tc.now, "3.5.16", ""), "cp-1")
			require.NoError(t, err)
			item := list.Items[0]
			if tc.refused != "" {
				require.NotNil(t, item.Refusal)
				assert.Equal(t, tc.refused, item.Refusal.Reason)
				return
			}
			require.Nil(t, item.Refusal)
			require.GreaterOrEqual(t, len(item.Hops), 2)
			assert.EqualValues(t, "v1.34.1", item.Hops[1].Target.ControlPlane)
			assert.Contains(t, findings(item), upgrade.FindingEtcdTooOld)
		})
	}
}

func TestAHostWithNothingToDoIsNotSilentAboutWhatIsWrongWithIt(t *testing.T) {
	at := func(kubelet, runtime string) string {
		text := controlPlaneFacts("cp", "v1.37.2", "3.6.4", "")
		return strings.NewReplacer("{name: kubelet, version: 1.37.2-1.1}", "{name: kubelet, version: "+kubelet+"}", "{name: containerd, version: 2.1.4-1}", "{name: containerd, version: "+runtime+"}").Replace(text)
	}
	condition := "  conditions: [{type: RestartPending, status: \"True\", reason: OldProcessRuns, message: kubelet runs v1.37.2 and v1.37.3 is installed, lastTransitionTime: 2026-01-01T00:00:00Z}]\n"
	there := controlPlane("cp", "v1.37.2", "v1.37.2")
	for name, tc := range map[string]struct{ objects, facts, reason, says string }{
		"all is well":                      {there, at("1.37.2-1.1", "2.1.4-1"), "", ""},
		"the kubelet's package is ahead":   {there, at("1.37.3-1.1", "2.1.4-1"), upgrade.FindingRestartPending, "kubelet runs v1.37.2, package kubelet 1.37.3-1.1 is installed"},
		"the kubelet's package is behind":  {there, at("1.37.1-1.1", "2.1.4-1"), upgrade.FindingRestartPending, "1.37.1-1.1"},
		"the runtime's package is ahead":   {there, at("1.37.2-1.1", "2.2.0-1"), upgrade.FindingRestartPending, "containerd runs 2.1.4, package containerd 2.2.0-1 is installed"},
		"the program on disk is ahead":     {there, strings.Replace(at("1.37.2-1.1", "2.1.4-1"), "installed: v1.37.2, active", "installed: v1.37.3, active", 1), upgrade.FindingRestartPending, "v1.37.3"},
		"the Machine reports it":           {strings.Replace(there, "status:\n", "status:\n"+condition, 1), "", upgrade.FindingRestartPending, "v1.37.3 is installed"},
		"a kubelet ahead of an API server": {there + controlPlane("x", "v1.36.4", "v1.36.4"), at("1.37.2-1.1", "2.1.4-1"), upgrade.FindingSkewViolated, "kubelet v1.37.2 on cp is newer than the oldest API server v1.36.4"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, tc.objects, tc.facts, "cp")
			require.NoError(t, err)
			item := list.Items[0]
			require.Equal(t, preview.StateUpToDate, item.State, "%+v", item.Refusal)
			if tc.reason == "" {
				assert.Empty(t, item.Findings)
				return
			}
			require.Contains(t, findings(item), tc.reason)
			for _, f := range item.Findings {
				if f.Reason == tc.reason {
					assert.Equal(t, upgrade.SeverityWarning, f.Severity)
					assert.Contains(t, f.Message, tc.says)
				}
			}
		})
	}
}

func TestMachinesOfTwoNamespacesAreToldApart(t *testing.T) {
	one := worker("w1", "v1.36.3", "v1.37.2")
	other := strings.Replace(strings.Replace(one, "name: w1,", "name: w1, namespace: other,", 1), "id-w1", "id-other", 1)
	list, err := planned(t, one+other, "")
	require.NoError(t, err)
	assert.Equal(t, []string{"other/w1", "refit/w1"}, list.Refused())
	var table bytes.Buffer
	require.NoError(t, preview.Print(&table, list, false))
	assert.Contains(t, table.String(), "\nother/w1 ")
	assert.Contains(t, table.String(), "\nrefit/w1: refused: ")

	_, err = planned(t, one+other, factsOf("w1", "", "x"))
	require.ErrorContains(t, err, "stdin:3: host: no Machine belongs to these facts: there are several that could be it, other/w1 and refit/w1")
	_, err = planned(t, one+other, factsOf("w1", "w1", "id-other"))
	require.NoError(t, err, "the machine id says which")
}

func TestAPoolThatMatchesNoMachineIsNotSilent(t *testing.T) {
	pool := "\n{apiVersion: refit.dev/v1alpha1, kind: MachineDeployment, metadata: {name: none}, spec: {selector: {matchLabels: {pool: none}}, template: {spec: {}}}}\n"
	list, err := planned(t, worker("w1", "v1.36.3", "v1.36.3")+pool, "", "machd/none")
	require.NoError(t, err)
	assert.Empty(t, list.Items)
	require.Len(t, list.Findings, 1)
	assert.Equal(t, plan.FindingNoMachine, list.Findings[0].Reason)
	assert.Contains(t, list.Findings[0].Message, "machd/none matches no Machine")
	_, err = planned(t, worker("w1", "v1.36.3", "v1.36.3"), "", "machine/none")
	require.ErrorContains(t, err, "machine/none is not there")
}

// offering is an index of Kubernetes packages at some releases.
func offering(minor string, releases ...string) string {
	uri := "https://pkgs.example/" + minor + "/deb/"
	text := "  - uri: " + uri + "\n    suites: [/]\n    packages: [containerd, containerd.io, cri-o, cri-tools, kubeadm, kubectl, kubelet, kubernetes-cni, runc]\n    candidates:\n"
	for _, release := range releases {
		for _, name := range []string{"kubelet", "kubeadm"} {
			text += "    - {name: " + name + ", version: " + release + "-1.1, source: \"" + uri + "\", path: ./" + name + "_" + release + ".deb, sha256: " + fmt.Sprintf("%x", sha256.Sum256([]byte(name+release))) + ", size: 1}\n"
		}
	}
	return text
}

// threeMinors are Machines from v1.34.4 to v1.37.2, and what is known of their hosts.
func threeMinors(controlPlanes []string, indexes func(name string) string) (objects, facts string) {
	text := "apiVersion: facts.refit.dev/v1\nkind: Facts\nhost: {hostname: NAME, machineID: id-NAME, bootID: b}\nos: {id: debian, versionID: '12', family: apt, architecture: amd64}\n" +
		"kubelet: {running: v1.34.4, installed: v1.34.4, unit: kubelet.service, active: true}\nkubeadm: {installed: v1.34.4}\n" +
		"containerRuntime: {name: containerd, running: v2.1.4, installed: 2.1.4, unit: containerd.service, ready: true}\nnode: {name: NAME}\nCONTROL\nreboot: {}\n" +
		"packages:\n  manager: apt\n  installed:\n  - {name: containerd, version: 2.1.4-1}\n  - {name: kubeadm, version: 1.34.4-1.1}\n  - {name: kubelet, version: 1.34.4-1.1}\n" +
		"  sources:\n  - {file: /etc/apt/sources.list.d/kubernetes.list, line: 1, uri: \"https://pkgs.example/v1.34/deb/\", suites: [/], provides: [cri-tools, kubeadm, kubectl, kubelet, kubernetes-cni]}\n  indexes:\n"
	control := "controlPlane: {apiServer: v1.34.4, controllerManager: v1.34.4, scheduler: v1.34.4, etcd: 3.6.4}"
	for _, name := range controlPlanes {
		objects += controlPlane(name, "v1.34.4", "v1.37.2")
		facts += strings.NewReplacer("NAME", name, "CONTROL", control).Replace(text) + indexes(name) + "---\n"
	}
	facts += strings.NewReplacer("NAME", "w", "CONTROL\n", "").Replace(text) + offering("v1.37", "1.37.2")
	return objects + worker("w", "v1.34.4", "v1.37.2"), facts
}

// The counts are those of docs/planning.md.
func TestThreeMinorsArePlannedInOneGo(t *testing.T) {
	for name, tc := range map[string]struct {
		controlPlanes []string
		drains        []int
	}{
		"one control plane":    {[]string{"cp-1"}, []int{3, 1}},
		"three control planes": {[]string{"cp-1", "cp-2", "cp-3"}, []int{4, 4, 3, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, facts := threeMinors(tc.controlPlanes, func(string) string {
				return offering("v1.35", "1.35.9", "1.35.10", "1.36.7") + offering("v1.36", "1.36.0~rc.1", "1.36.3") + offering("v1.37", "1.37.2", "1.37.4")
			})
			list, err := planned(t, objects, facts)
			require.NoError(t, err)
			var drains []int
			for _, item := range list.Items {
				require.Nil(t, item.Refusal, item.Machine)
				drains = append(drains, item.Drains)
				assert.NotEmpty(t, item.Hash)
			}
			assert.Equal(t, tc.drains, drains)
			var way []string
			for _, hop := range list.Items[0].Hops {
				if hop.Target.ControlPlane != "" {
					way = append(way, string(hop.Target.ControlPlane))
				}
			}
			assert.Equal(t, []string{"v1.35.10", "v1.36.3", "v1.37.2"}, way)
			findings := list.Items[0].Findings
			require.NotEmpty(t, findings)
			assert.Equal(t, preview.FindingReleaseChosen, findings[0].Reason)
			assert.Contains(t, findings[0].Message, "v1.35 is passed through with v1.35.10")
		})
	}
}

func TestAReleaseInBetweenIsOneThatEveryControlPlaneCanGet(t *testing.T) {
	whole := offering("v1.35", "1.35.9", "1.35.10") + offering("v1.36", "1.36.3") + offering("v1.37", "1.37.2")
	for name, tc := range map[string]struct {
		indexes func(name string) string
		way     string
		says    string
		unasked string
	}{
		"a mirror that lags behind": {func(name string) string {
			if name == "cp-2" {
				return offering("v1.35", "1.35.9") + offering("v1.36", "1.36.3") + offering("v1.37", "1.37.2")
			}
			return whole
		}, "v1.35.9", "", ""},
		"a host whose repositories are not known is asked for nothing": {func(name string) string {
			if name == "cp-2" {
				return offering("v1.37", "1.37.2")
			}
			return whole
		}, "v1.35.10", "", "the package sources of cp-1 offer; those of cp-2 were not asked"},
		"nothing in common": {func(name string) string {
			if name == "cp-2" {
				return offering("v1.35", "1.35.8") + offering("v1.36", "1.36.3") + offering("v1.37", "1.37.2")
			}
			return whole
		}, "", "the package sources of cp-1, cp-2 offer no release of v1.35 that all of them can get", ""},
		"no minor in between": {func(string) string { return offering("v1.37", "1.37.2") }, "", "refit-agent facts --minor v1.35 --minor v1.36 prints on the control-plane hosts", ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects, facts := threeMinors([]string{"cp-1", "cp-2"}, tc.indexes)
			list, err := planned(t, objects, facts, "cp-1")
			require.NoError(t, err)
			cp := list.Items[0]
			if tc.says == "" {
				require.Nil(t, cp.Refusal)
				assert.EqualValues(t, tc.way, cp.Hops[0].Target.ControlPlane)
				for _, f := range cp.Findings {
					unasked := tc.unasked != "" && strings.HasPrefix(f.Message, "v1.35")
					if f.Reason == preview.FindingReleaseChosen && unasked {
						assert.Equal(t, upgrade.SeverityWarning, f.Severity)
						assert.Contains(t, f.Message, tc.unasked)
					}
					assert.Equal(t, tc.unasked != "", strings.Contains(f.Message, "not asked"), f.Message)
				}
				return
			}
			require.NotNil(t, cp.Refusal)
			assert.Equal(t, upgrade.ReasonHopVersionUnknown, cp.Refusal.Reason)
			assert.Contains(t, cp.Refusal.Message, tc.says)
			assert.Contains(t, cp.Refusal.Message, "set spec.versions.controlPlane and spec.versions.kubelet of every control-plane Machine to one release of v1.35 first")
		})
	}
}

func TestADeadKubeletIsToldOfThoughNothingIsWishedOfIt(t *testing.T) {
	silent := strings.Replace(worker("w", "Unknown", "v1.36.3"), ", versions: {kubelet: v1.36.3}", "", 1)
	list, err := planned(t, controlPlane("cp", "v1.36.3", "v1.36.3")+silent, "", "w")
	require.NoError(t, err)
	item := list.Items[0]
	assert.Equal(t, preview.StateUpToDate, item.State)
	require.Len(t, item.Findings, 1)
	assert.Equal(t, upgrade.FindingKubeletDown, item.Findings[0].Reason)
	assert.Contains(t, item.Findings[0].Message, "journalctl -u kubelet")
	list, err = planned(t, controlPlane("cp", "v1.36.3", "v1.36.3")+strings.Replace(worker("w", "v1.36.3", "v1.36.3"), ", versions: {kubelet: v1.36.3}", "", 1), "", "w")
	require.NoError(t, err)
	assert.Empty(t, list.Items[0].Findings, "one that runs")
}
