package upgrade

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// everythingMoves is a plan that needs every fact: a control-plane minor, its kubelet and its configuration, a runtime minor, a package and a reboot.
func everythingMoves() PlanInput {
	a := controlPlaneTo("v1.37.2")
	a.Target.ContainerRuntime, a.Target.OS = containerdAt("2.4.2"), true
	f := controlPlaneFacts("v1.36.3", "1.7.28")
	f.Packages.Installed = append(f.Packages.Installed, InstalledPackage{Name: "openssl", Version: "3.0.14-1"})
	f.Packages.Sources[0].Provides = append(f.Packages.Sources[0].Provides, "openssl")
	f.Reboot.Required = true
	f.Kubelet.ConfigArgs = &ConfigArgsFacts{Value: kubeadmConfigArgs}
	spec := controlPlane()
	spec.Kubelet = &v1alpha1.KubeletSpec{Configuration: &runtime.RawExtension{Raw: []byte(`{"maxPods":200}`)}}
	spec.OS = &v1alpha1.OSSpec{Packages: []v1alpha1.Package{{Name: "openssl"}, {Name: "curl"}}, Reboot: v1alpha1.RebootIfRequired}
	return PlanInput{
		Machine: "w1", Spec: spec, Assignment: a, Facts: f,
		Candidates: append(candidatesOf([]string{"v1.37.2"}, []string{"2.4.2"}), candidate("curl", "8.0-1", debianURI)),
	}
}

func TestAProbeThatFailedKeepsBackThePlanThatNeedsIt(t *testing.T) {
	require.Equal(t, v1alpha1.DisruptionReboot, plan(t, everythingMoves()).Disruption)
	for _, need := range factsNeeded {
		t.Run(need.field, func(t *testing.T) {
			in := everythingMoves()
			in.Facts.Problems = []Problem{{Field: need.field, Message: "input/output error"}}
			_, err := NewPlan(in)
			blocked := requireBlocked(t, err, FindingFactUnknown)
			assert.False(t, blocked.Terminal, "the host is looked at again")
			assert.Contains(t, blocked.Message, need.field)
			assert.Contains(t, blocked.Message, "input/output error")
		})
	}
}

func TestAProbeThatFailedKeepsBackNoPlanThatDoesNotNeedIt(t *testing.T) {
	in := osInput(v1alpha1.Package{Name: "htop"})
	in.Facts.Problems = []Problem{
		{Field: "kubelet.configuration", Message: "m"}, {Field: "certificates", Message: "m"}, {Field: "controlPlane.deprecatedAPIs", Message: "m"}, {Field: "reboot", Message: "m"},
	}
	assert.NotEmpty(t, plan(t, in).Steps)
}

func TestWhereOtherUpdatersCouldNotBeLookedForItIsSaid(t *testing.T) {
	in := kubeletHop("v1.36.3", "v1.36.4")
	in.Facts.Problems = []Problem{{Field: "conflictingManagers", Message: "no D-Bus"}}
	findings := plan(t, in).Findings
	require.Equal(t, []string{FindingFactUnknown}, reasons(findings))
	assert.Equal(t, SeverityWarning, findings[0].Severity)
}

// A version that could not be read is never replaced by the one on disk.
func TestAVersionThatCouldNotBeReadIsNoVersion(t *testing.T) {
	silent := workerFacts("v1.36.3", "1.7.28")
	silent.Kubelet.Running = ""
	_, err := NewPlan(PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.36.4", "v1.36.4"), Facts: silent, Candidates: candidatesOf([]string{"v1.36.4"}, nil)})
	requireBlocked(t, err, ReasonVersionUnknown)

	deaf := workerFacts("v1.36.3", "2.4.2")
	deaf.Runtime.Running = ""
	toInstalled := v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt("2.4.2")}}}
	_, err = NewPlan(PlanInput{Machine: "w1", Spec: worker(), Assignment: toInstalled, Facts: deaf})
	assert.False(t, requireBlocked(t, err, ReasonVersionUnknown).Terminal, "what is installed is not what runs")

	odd := workerFacts("v1.36.3", "1.7.28")
	odd.Runtime.Running, odd.Runtime.Installed = "containerd://", ""
	_, err = NewPlan(PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo("v1.37.2", "v1.37.2"), Facts: odd, Candidates: candidatesOf([]string{"v1.37.2"}, nil)})
	assert.Contains(t, requireBlocked(t, err, ReasonVersionUnknown).Message, "kubelet v1.37.2 takes it")
}

// The API server has moved; whether the other components have is not known.
func TestComponentsThatCouldNotBeListedAreNotTakenForDone(t *testing.T) {
	in := PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: controlPlaneTo("v1.37.2"), Facts: controlPlaneFacts("v1.37.2", "2.4.2")}
	in.Facts.Control.ControllerManager, in.Facts.Control.Scheduler = "", ""
	in.Facts.Problems = []Problem{{Field: "containers", Message: "connection refused"}}
	_, err := NewPlan(in)
	requireBlocked(t, err, ReasonVersionUnknown)
	in.Facts.Problems = []Problem{{Field: "controlPlane", Message: "permission denied"}}
	in.Facts.Control = nil
	_, err = NewPlan(in)
	requireBlocked(t, err, ReasonRoleMismatch)
	in.Assignment.Target.ControlPlane = ""
	in.Assignment.Target.Kubelet = "v1.37.3"
	_, err = NewPlan(in)
	assert.False(t, requireBlocked(t, err, ReasonVersionUnknown).Terminal)
}

// judgedElsewhere are probes whose failure is refused where their fact is read, or harms no plan.
var judgedElsewhere = []string{
	"kubelet", "kubelet.running", // no version: VersionUnknown
	"containerRuntime.running",   // likewise
	"controlPlane", "containers", // likewise
	"os",                                                                      // no family of packages: UnsupportedOS
	"etcdUnit.installed",                                                      // no version: VersionUnknown
	"etcdUnit.endpoint",                                                       // the member is asked at it, and then it is etcd that is not known
	"kubelet.installed", "containerRuntime.installed", "kubeadm", "kubeProxy", // what is on disk, or is only reported
	"containerRuntime.sandboxes",                                              // a number for people
	"host", "host.hostname", "host.machineID", "host.systemUUID", "os.kernel", // identity is the node's
	"packages.installed.changedBy", // who it was is for people
	"packages.lock",                // whoever may not open it may not install either
	"packages.indexes",             // what is offered is not known: CandidatesUnknown, and no hash
	"conflictingManagers",          // a warning
	"hold",                         // what cannot be read holds
}

// Every problem that a probe can report is either needed for a plan or judged elsewhere: none is forgotten.
func TestEveryProbeThatCanFailIsJudged(t *testing.T) {
	var judged []string
	for _, need := range factsNeeded {
		judged = append(judged, need.field)
	}
	fields := probeFields(t)
	require.Greater(t, len(fields), 20)
	for _, field := range fields {
		assert.True(t, slices.Contains(judged, field) || slices.Contains(judgedElsewhere, field), "a failed probe of %s is judged by nobody", field)
	}
	for _, field := range append(judged, judgedElsewhere...) {
		assert.Contains(t, fields, field, "no probe reports it")
	}
}

// probeFields reads from the probes' source which fields they can call unknown.
func probeFields(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../agent/host/facts/*.go")
	require.NoError(t, err)
	var fields []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			var first ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "problem" {
					first = n.Args[0]
				}
			case *ast.CompositeLit:
				if len(n.Elts) == 2 { // of the list of probes: {"field", (*gathering).probe}
					if _, ok := n.Elts[1].(*ast.SelectorExpr); ok {
						first = n.Elts[0]
					}
				}
			}
			if literal, ok := first.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				field, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				fields = append(fields, field)
			}
			return true
		})
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}
