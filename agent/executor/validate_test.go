package executor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/steps"
	"github.com/refit-dev/refit/pkg/hostpolicy"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestGoodPlansAreValid(t *testing.T) {
	for name, plan := range map[string]upgrade.Plan{"worker": workerPlan(), "control plane": controlPlanePlan(), "reboot": rebootPlan(), "certificates": renewalPlan(time.Now())} {
		assert.NoError(t, Validate(upgrade.Operation{ID: "g", Plan: plan}), name)
	}
}

func TestWhatAPlanMayNotSayIsRefused(t *testing.T) {
	install := func(change func(*upgrade.PackageChange)) upgrade.Step {
		c := kubernetes("kubelet")
		change(&c)
		return upgrade.Step{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{c}}
	}
	file := func(path string) upgrade.Step {
		return upgrade.Step{Kind: upgrade.StepWriteConfig, File: &upgrade.FileChange{Path: path, Mode: 0o644}}
	}
	configFile := func(path, content string) upgrade.Step {
		return upgrade.Step{Kind: upgrade.StepWriteConfig, File: &upgrade.FileChange{Path: path, Content: content, Mode: 0o644}}
	}
	source := func(c upgrade.SourceChange) upgrade.Step {
		return upgrade.Step{Kind: upgrade.StepSwitchSource, Source: &c}
	}
	kubeadm := func(k upgrade.KubeadmUpgrade) upgrade.Step {
		return upgrade.Step{Kind: upgrade.StepKubeadmUpgrade, Kubeadm: &k}
	}
	for name, tc := range map[string]struct {
		step upgrade.Step
		says string
	}{
		"an unknown kind":                     {upgrade.Step{Kind: "RunCommand"}, "not known"},
		"a step that belongs before":          {upgrade.Step{Kind: upgrade.StepStage}, "not known"},
		"a name that is an option":            {install(func(c *upgrade.PackageChange) { c.Name = "-oAPT::x" }), `package name "-oAPT::x"`},
		"a name that apt reads as removal":    {install(func(c *upgrade.PackageChange) { c.Name = "openssh-server-" }), "package name"},
		"a name that is a pattern":            {install(func(c *upgrade.PackageChange) { c.Name = "?essential" }), "package name"},
		"a version that is an option":         {install(func(c *upgrade.PackageChange) { c.To = "--force" }), "version of kubelet"},
		"a file outside the stage":            {install(func(c *upgrade.PackageChange) { c.File = "../../tmp/x.deb" }), "file of kubelet"},
		"no digest":                           {install(func(c *upgrade.PackageChange) { c.SHA256 = "" }), "digest of kubelet"},
		"no packages":                         {upgrade.Step{Kind: upgrade.StepHoldPackages}, "no packages"},
		"a static pod":                        {file("/etc/kubernetes/manifests/x.yaml"), "not one that a plan may write"},
		"a path with steps back":              {file("/etc/kubernetes/kubelet.conf.d/../manifests/x.yaml"), "not one that a plan may write"},
		"a file below a managed directory":    {file("/etc/kubernetes/kubelet.conf.d/x/y.conf"), "not one that a plan may write"},
		"a setuid file":                       {upgrade.Step{Kind: upgrade.StepWriteConfig, File: &upgrade.FileChange{Path: dropIn, Mode: 0o4755}}, "mode"},
		"a drop-in that says one thing twice": {configFile(upgrade.KubeletDropInPath, "maxPods: 1\nmaxPods: 2\n"), "no YAML"},
		"a drop-in that is no YAML":           {configFile(upgrade.KubeletDropInPath, "a: [\n"), "no YAML"},
		"a unit that runs something":          {configFile(upgrade.KubeletUnitDropInPath, "[Service]\nExecStartPre=/bin/sh -c id\n"), "more than the variables"},
		"a variable that goes on":             {configFile(upgrade.KubeletUnitDropInPath, "[Service]\nEnvironment=A=b \\\nExecStartPre=/bin/id\n"), "more than the variables"},
		"no file":                             {upgrade.Step{Kind: upgrade.StepWriteConfig}, "no file"},
		"a source file elsewhere":             {upgrade.Step{Kind: upgrade.StepSwitchSource, Source: &upgrade.SourceChange{File: "/root/x"}}, "not one of a package manager's"},
		"the policy as a source file":         {source(upgrade.SourceChange{File: hostpolicy.Path, To: "http://m/"}), "not one of a package manager's"},
		"the passwords as a source file":      {source(upgrade.SourceChange{File: "/etc/apt/auth.conf", To: "http://m/"}), "not one of a package manager's"},
		"a source file by steps back":         {source(upgrade.SourceChange{File: "/etc/apt/sources.list.d/../x.list", To: "http://m/"}), "not one of a package manager's"},
		"a source with a NUL":                 {source(upgrade.SourceChange{File: sourceFile, To: "http://m/\x00"}), "source URI"},
		"a source with a line of its own":     {source(upgrade.SourceChange{File: sourceFile, To: "http://m/\nTrusted: yes"}), "source URI"},
		"a new source with credentials":       {source(upgrade.SourceChange{File: sourceFile, To: "http://u:p@m/"}), "without credentials"},
		"a new source of a file":              {source(upgrade.SourceChange{File: sourceFile, To: "file:///srv/evil"}), "new source"},
		"a suite with a line of its own":      {source(upgrade.SourceChange{File: sourceFile, To: "http://m/", Suites: []string{"a\nTrusted: yes"}}), "suite or component"},
		"a component with a bracket":          {source(upgrade.SourceChange{File: sourceFile, To: "http://m/", Components: []string{"[trusted=yes]"}}), "suite or component"},
		"a keyring that is a path":            {source(upgrade.SourceChange{File: sourceFile, To: "http://m/", SignedBy: "/tmp/k.gpg"}), "keyring"},
		"a keyring with a line of its own":    {source(upgrade.SourceChange{File: sourceFile, To: "http://m/", SignedBy: "k\nTrusted: yes"}), "keyring"},
		"the owner's policy":                  {configFile(hostpolicy.Path, "hooks: {}\n"), "not one that a plan may write"},
		"the owner's hold":                    {upgrade.Step{Kind: upgrade.StepWriteConfig, File: &upgrade.FileChange{Path: "/etc/refit/hold", Remove: true}}, "not one that a plan may write"},
		"the kubelet's own configuration":     {configFile("/var/lib/kubelet/config.yaml", "staticPodPath: /tmp\n"), "not one that a plan may write"},
		"the kubelet's flags":                 {configFile("/var/lib/kubelet/kubeadm-flags.env", "X=--anonymous-auth\n"), "not one that a plan may write"},
		"a variable of another program":       {configFile(upgrade.KubeletUnitDropInPath, "[Service]\nEnvironment=LD_PRELOAD=/tmp/x.so\n"), "more than the variables"},
		"the kubelet's other flags":           {configFile(upgrade.KubeletUnitDropInPath, "[Service]\nEnvironment=KUBELET_EXTRA_ARGS=--anonymous-auth=true\n"), "more than the variables"},
		"a second variable in the line":       {configFile(upgrade.KubeletUnitDropInPath, "[Service]\nEnvironment=\"KUBELET_CONFIG_ARGS=a\" LD_PRELOAD=/tmp/x.so\n"), "more than the variables"},
		"a source with an option":             {upgrade.Step{Kind: upgrade.StepSwitchSource, Source: &upgrade.SourceChange{File: sourceFile, To: "http://a/ [trusted=yes]"}}, "source URI"},
		"all preflight errors ignored":        {kubeadm(upgrade.KubeadmUpgrade{Version: "v1.37.2", IgnorePreflightErrors: []string{"all"}}), "never all"},
		"a preflight error with an option":    {kubeadm(upgrade.KubeadmUpgrade{Version: "v1.37.2", IgnorePreflightErrors: []string{"A,--force"}}), "preflight error id"},
		"a version that is none":              {kubeadm(upgrade.KubeadmUpgrade{Version: "stable-1"}), "version"},
		"a unit that is an option":            {upgrade.Step{Kind: upgrade.StepRestartUnit, Unit: "--root=/.service"}, "unit"},
		"a unit that is no service":           {upgrade.Step{Kind: upgrade.StepRestartUnit, Unit: "reboot.target"}, "unit"},
		"a hook that is a path":               {upgrade.Step{Kind: upgrade.StepRunHook, Hook: "../../bin/sh"}, "hook"},
		"a kubelet that is not started":       {upgrade.Step{Kind: upgrade.StepStopSandboxes}, "no later step starts it"},
		"a pod of somebody else's":            {upgrade.Step{Kind: upgrade.StepRestartStaticPod, Pod: "kube-vip"}, "no component of a control plane"},
		"a renewal for no time":               {upgrade.Step{Kind: upgrade.StepKubeadmRenewCertificates, Renewal: &upgrade.Renewal{Before: "-1h"}}, "not a time"},
		"a renewal that says nothing":         {upgrade.Step{Kind: upgrade.StepKubeadmRenewCertificates}, "how long"},
		"a way back without a way":            {upgrade.Step{Kind: upgrade.StepRestoreCertificates}, "for a rollback"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := sealed(upgrade.Plan{Steps: []upgrade.Step{tc.step}})
			require.ErrorContains(t, Validate(upgrade.Operation{ID: "g", Plan: plan}), tc.says)
		})
	}
}

func TestASecondRebootForOneReasonIsRefused(t *testing.T) {
	plan := rebootPlan()
	plan.Steps = append(plan.Steps, upgrade.Step{Kind: upgrade.StepReboot, Reason: "kernel"})
	require.ErrorContains(t, Validate(upgrade.Operation{ID: "g", Plan: sealed(plan)}), "second reboot")
}

func TestAPlanThatIsNotTheGrantedOneTouchesNothing(t *testing.T) {
	b := worker(t)
	b.op.Plan.Steps[1].Hook = "another" // after the hash was granted
	before := b.host.Snapshot()
	rec := b.finish()
	assert.Equal(t, "OperationInvalid", rec.Reason)
	assert.Contains(t, rec.Message, "granted was")
	assert.Equal(t, before, b.host.Snapshot())
}

func TestEveryKindOfStepIsKnownOrRefusedOnPurpose(t *testing.T) {
	for _, kind := range []upgrade.StepKind{
		upgrade.StepPreflight, upgrade.StepUnholdPackages, upgrade.StepSwitchSource, upgrade.StepInstallPackages, upgrade.StepHoldPackages,
		upgrade.StepWriteConfig, upgrade.StepKubeadmUpgrade, upgrade.StepReloadUnits, upgrade.StepStopSandboxes, upgrade.StepRestartUnit,
		upgrade.StepRunHook, upgrade.StepReboot, upgrade.StepVerify,
	} {
		k, known := steps.For(kind)
		require.True(t, known, kind)
		assert.Positive(t, k.Deadline, "%s has a deadline", kind)
	}
}

func TestThePlansOfTheTestsUseEveryKindOfStep(t *testing.T) {
	used := map[upgrade.StepKind]bool{}
	for _, p := range []upgrade.Plan{workerPlan(), rebootPlan()} {
		for _, s := range p.Steps {
			used[s.Kind] = true
		}
	}
	assert.Len(t, used, 13)
}
