package upgrade

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/hostpolicy"
)

func allowing(s hostpolicy.Sources) *PolicyFacts { return policyOf(hostpolicy.Policy{Sources: s}) }

func policyOf(p hostpolicy.Policy) *PolicyFacts {
	return &PolicyFacts{Path: hostpolicy.Path, Rules: &p}
}

func source(name, uri, key string) []v1alpha1.PackageSource {
	return []v1alpha1.PackageSource{{Name: name, URI: uri, Suites: []v1alpha1.SourceWord{"/"}, SignedBy: key}}
}

// A spec outside the policy ends in a reason that waits for another one, before anything is
// looked up: Check is what is asked before any repository is.
func TestASpecOutsideThePolicyIsRefusedBeforeAnythingIsFetched(t *testing.T) {
	for name, tc := range map[string]struct {
		policy *PolicyFacts
		spec   func(*v1alpha1.MachineSpec)
		says   []string
	}{
		"a source that the host does not have": {nil, func(s *v1alpha1.MachineSpec) { s.PackageSources = source("evil", "https://evil.example/deb/", "k8s") },
			[]string{"sources.allow", `"https://evil.example/deb/"`, "/etc/refit/policy.yaml"}},
		"its own source at another place": {nil, func(s *v1alpha1.MachineSpec) {
			s.PackageSources = source("kubernetes", "https://evil.example/{minor}/deb/", "k8s")
		}, []string{"sources.allow", "evil.example/v1.3"}},
		"a new source at an allowed place": {allowing(hostpolicy.Sources{Allow: []string{"mirror.corp"}}), func(s *v1alpha1.MachineSpec) {
			s.PackageSources = source("more", "https://mirror.corp/deb/", "k8s")
		}, []string{"sources.new", `"more"`}},
		"a keyring of another source": {allowing(hostpolicy.Sources{Allow: []string{"mirror.corp"}, New: true}), func(s *v1alpha1.MachineSpec) {
			s.PackageSources = source("more", "https://mirror.corp/deb/", "snakeoil")
		}, []string{"sources.keyrings", `"snakeoil"`}},
		"a hook": {policyOf(hostpolicy.Policy{Hooks: hostpolicy.Hooks{Allow: []string{"smoke"}}}), func(s *v1alpha1.MachineSpec) {
			s.Hooks = &v1alpha1.HooksSpec{PreApply: []v1alpha1.HookName{"raid-check"}}
		}, []string{"hooks.allow", `"raid-check"`}},
		"a package that is denied": {policyOf(hostpolicy.Policy{Packages: hostpolicy.Packages{Deny: []string{"open*"}}}), func(*v1alpha1.MachineSpec) {}, []string{"packages.deny", `"openssl"`, `"open*"`}},
		"a package beside others":  {policyOf(hostpolicy.Policy{Packages: hostpolicy.Packages{Allow: []string{"curl"}}}), func(*v1alpha1.MachineSpec) {}, []string{"packages.allow", `"openssl"`}},
	} {
		t.Run(name, func(t *testing.T) {
			in := osInput(v1alpha1.Package{Name: "openssl"})
			in.Facts.Packages.Sources[0].SignedBy = "debian"
			in.Facts.Policy = tc.policy
			tc.spec(&in.Spec)
			_, err := Check(in)
			blocked := requireBlocked(t, err, ReasonHostPolicy)
			assert.True(t, blocked.Terminal)
			for _, says := range tc.says {
				assert.Contains(t, blocked.Message, says)
			}
		})
	}
}

func TestAPolicyThatCannotBeReadRefusesEverythingUntilItIsMended(t *testing.T) {
	for _, broken := range []*PolicyFacts{{Path: hostpolicy.Path, Broken: `line 2: there is no field "hoks"`}, {Path: hostpolicy.Path}} {
		in := kubeletHop("v1.36.3", "v1.36.4")
		in.Facts.Policy = broken
		_, err := Check(in)
		blocked := requireBlocked(t, err, ReasonHostPolicy)
		assert.False(t, blocked.Terminal, "its owner mends it, no spec does")
		assert.Contains(t, blocked.Message, hostpolicy.Path)
		assert.Contains(t, blocked.Message, broken.Broken)
		requireBlocked(t, JudgePlan(Facts{Policy: broken}, Plan{}), ReasonHostPolicy)
	}
}

func TestAPlanWithAStepThatIsDeniedIsRefused(t *testing.T) {
	in := everythingMoves()
	for _, kind := range []StepKind{StepReboot, StepKubeadmUpgrade, StepWriteConfig, StepSwitchSource, StepInstallPackages} {
		in.Facts.Policy = policyOf(hostpolicy.Policy{Steps: hostpolicy.Steps{Deny: []string{string(kind)}}})
		_, err := NewPlan(in)
		blocked := requireBlocked(t, err, ReasonHostPolicy)
		assert.True(t, blocked.Terminal)
		assert.Contains(t, blocked.Message, `step "`+string(kind)+`" is outside steps.deny`)
	}
}

// A host that has a source follows it to another minor without a policy, and with one that speaks of other things.
func TestTheHostsOwnSourceIsFollowedUnderAnyPolicy(t *testing.T) {
	in := everythingMoves()
	for _, policy := range []*PolicyFacts{nil, policyOf(hostpolicy.Policy{}), allowing(hostpolicy.Sources{Allow: []string{"elsewhere.corp"}, Keyrings: []string{"x"}})} {
		in.Facts.Policy = policy
		assert.NotEmpty(t, plan(t, in).Steps)
	}
}

func TestWhatIsAlwaysRefusedIsAllowedByThePolicyAlone(t *testing.T) {
	in := osInput(v1alpha1.Package{Name: "dropbear", State: v1alpha1.PackageAbsent})
	in.Facts.Packages.Installed = append(in.Facts.Packages.Installed, InstalledPackage{Name: "dropbear", Version: "1-1"})
	_, err := NewPlan(in)
	assert.Contains(t, requireBlocked(t, err, ReasonProtectedPackage).Message, "packages.remove in /etc/refit/policy.yaml")
	in.Facts.Policy = policyOf(hostpolicy.Policy{Packages: hostpolicy.Packages{Remove: []string{"dropbear"}}})
	assert.Contains(t, outline(plan(t, in)), "InstallPackages dropbear")

	in = everythingMoves()
	in.Spec.Kubelet.Configuration = &runtime.RawExtension{Raw: []byte(`{"tlsMinVersion":"VersionTLS13"}`)}
	_, err = NewPlan(in)
	assert.Contains(t, requireBlocked(t, err, ReasonConfigurationRefused).Message, "kubelet.allow in /etc/refit/policy.yaml")
	in.Facts.Policy = policyOf(hostpolicy.Policy{Kubelet: hostpolicy.Kubelet{Allow: []string{"tlsMinVersion"}}})
	assert.NotEmpty(t, plan(t, in).Steps)
}

// What the owner lets go of is gone for good: the Machine has its wish and nothing is planned again.
func TestAHostWithoutWhatItsOwnerLetsGoOfIsUpToDate(t *testing.T) {
	for name, tc := range map[string]struct {
		policy     *PolicyFacts
		version    string
		expendable bool
		upToDate   bool
	}{
		"it is allowed and gone":  {policyOf(hostpolicy.Policy{Packages: hostpolicy.Packages{Remove: []string{"dropbear"}}}), "", true, true},
		"it is allowed and there": {policyOf(hostpolicy.Policy{Packages: hostpolicy.Packages{Remove: []string{"dropbear"}}}), "1-1", true, false},
		"another one is allowed":  {policyOf(hostpolicy.Policy{Packages: hostpolicy.Packages{Remove: []string{"openssh-server"}}}), "", false, false},
		"there is no policy":      {nil, "", false, false},
		"the policy is broken":    {&PolicyFacts{Path: hostpolicy.Path, Broken: "line 1"}, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := osInput(v1alpha1.Package{Name: "dropbear", State: v1alpha1.PackageAbsent})
			in.Facts.Policy = tc.policy
			if tc.version != "" {
				in.Facts.Packages.Installed = append(in.Facts.Packages.Installed, InstalledPackage{Name: "dropbear", Version: tc.version})
			}
			seen := in.Facts.ObservedOS(in.Spec.OS)
			assert.Equal(t, []v1alpha1.ObservedPackage{{Name: "dropbear", Version: tc.version, Expendable: tc.expendable}}, seen.Packages)
			ok, _, message := UpToDate(in.Spec, v1alpha1.MachineStatus{Versions: in.Facts.Versions(), OS: seen})
			assert.Equal(t, tc.upToDate, ok, message)
		})
	}
}

// The executor judges the same plan by what it reads itself, and says the same.
func TestAPlanIsJudgedWithoutItsSpec(t *testing.T) {
	facts := Facts{Packages: PackageFacts{Sources: []SourceFacts{{File: "/etc/apt/sources.list.d/k8s.list", URI: "https://m/v1.36/deb/", SignedBy: "/etc/apt/keyrings/k8s.gpg"}}}}
	file := func(content string) Step {
		return Step{Kind: StepWriteConfig, File: &FileChange{Path: KubeletDropInPath, Content: content}}
	}
	change := func(to, key string) Step {
		return Step{Kind: StepSwitchSource, Source: &SourceChange{Name: "k8s", File: "/etc/apt/sources.list.d/k8s.list", From: "https://m/v1.36/deb/", To: to, SignedBy: key}}
	}
	for name, tc := range map[string]struct {
		step Step
		says string
	}{
		"the next minor":               {change("https://m/v1.37/deb/", ""), ""},
		"the next minor, by its key":   {change("https://m/v1.37/deb/", "k8s"), ""},
		"another key":                  {change("https://m/v1.37/deb/", "snakeoil"), "sources.keyrings"},
		"another host":                 {change("https://evil/v1.37/deb/", ""), "sources.allow"},
		"a way back":                   {Step{Kind: StepSwitchSource, Source: &SourceChange{File: "/x", From: "https://m/"}}, ""},
		"the removal of sshd":          {Step{Kind: StepInstallPackages, Packages: []PackageChange{{Name: "openssh-server", From: "1"}}}, "packages.remove"},
		"the removal of Refit":         {Step{Kind: StepInstallPackages, Packages: []PackageChange{{Name: "refit-agent", From: "1"}}}, "packages.remove"},
		"the removal of libc":          {Step{Kind: StepInstallPackages, Packages: []PackageChange{{Name: "libc6", From: "1"}}}, "packages.remove"},
		"the removal of telnet":        {Step{Kind: StepInstallPackages, Packages: []PackageChange{{Name: "telnet", From: "1"}}}, ""},
		"static pods":                  {file("staticPodPath: /tmp\n"), `kubelet.allow`},
		"anybody may":                  {file("authorization: {mode: AlwaysAllow}\n"), `kubelet.allow`},
		"more pods":                    {file("maxPods: 5\n"), ""},
		"a drop-in that is taken away": {Step{Kind: StepWriteConfig, File: &FileChange{Path: KubeletDropInPath, Remove: true}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := JudgePlan(facts, Plan{Steps: []Step{tc.step}})
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			assert.Contains(t, requireBlocked(t, err, ReasonHostPolicy).Message, tc.says)
		})
	}
}

func TestSecurityUpdatesOutsideThePolicyAreLeftOutAndSaid(t *testing.T) {
	in := osInput()
	in.Spec.OS = &v1alpha1.OSSpec{SecurityUpdates: v1alpha1.SecurityUpdatesApply}
	digest := "0000000000000000000000000000000000000000000000000000000000000000"
	in.SecurityKnown, in.Security = true, []Candidate{
		{Name: "openssl", Version: "3.0.15-1", From: "3.0.14-1", SHA256: digest}, {Name: "nginx", Version: "1-2", From: "1-1", SHA256: digest},
	}
	in.Facts.Policy = policyOf(hostpolicy.Policy{Packages: hostpolicy.Packages{Deny: []string{"nginx*"}}})
	p := plan(t, in)
	assert.Contains(t, outline(p), "InstallPackages openssl=3.0.15-1")
	assert.Contains(t, reasons(p.Findings), FindingHostPolicy)
	pending, left := PendingSecurityUpdates(in.Security, &in.Facts)
	assert.Len(t, pending, 1)
	assert.Len(t, left, 1)
}

// The API server takes objects of up to a MiB and a half.
func TestAConfigurationThatNobodyWouldWriteIsRefused(t *testing.T) {
	in := everythingMoves()
	in.Spec.Kubelet.Configuration = &runtime.RawExtension{Raw: []byte(`{"clusterDomain":"` + strings.Repeat("a", 1400<<10) + `"}`)}
	_, err := Check(in)
	blocked := requireBlocked(t, err, ReasonConfigurationInvalid)
	assert.True(t, blocked.Terminal)
	assert.Less(t, len(blocked.Message), 1000, "it is not repeated")
}
