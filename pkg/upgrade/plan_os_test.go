package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// osInput is a host with openssl and telnet, and wishes for its packages.
func osInput(wish ...v1alpha1.Package) PlanInput {
	f := workerFacts("v1.36.3", "1.7.28")
	f.Packages.Installed = append(f.Packages.Installed, InstalledPackage{Name: "openssl", Version: "3.0.14-1"}, InstalledPackage{Name: "telnet", Version: "0.17-44"})
	spec := worker()
	spec.OS = &v1alpha1.OSSpec{Packages: wish}
	return PlanInput{
		Machine: "w1", Spec: spec, Facts: f,
		Assignment: v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{OS: true}},
		Candidates: append(offersOf("openssl", "3.0.15-1~deb12u1", "3.0.13-1"), append(offersOf("linux-image-amd64", "6.1.153-1"), offersOf("htop", "3.2.2-2")...)...),
	}
}

func TestPackagesAreBroughtToTheirVersionsInOneTransaction(t *testing.T) {
	p := plan(t, osInput(v1alpha1.Package{Name: "openssl", Version: "3.0.15-1~deb12u1"}, v1alpha1.Package{Name: "telnet", State: v1alpha1.PackageAbsent}, v1alpha1.Package{Name: "htop"}))
	assert.Equal(t, []string{"Preflight", "InstallPackages htop=3.2.2-2 openssl=3.0.15-1~deb12u1 telnet", "Verify"}, outline(p))
	assert.Equal(t, v1alpha1.DisruptionNone, p.Disruption)
	assert.Len(t, p.Stage.Packages, 2, "nothing is fetched for what goes away")
}

func TestPackagesWaitForTheHopTheyRideOn(t *testing.T) {
	in := osInput(v1alpha1.Package{Name: "openssl", Version: "3.0.15-1~deb12u1"})
	in.Assignment.Target.OS = false
	assert.True(t, new(plan(t, in)).Empty())
}

func TestAPinBelowWhatIsInstalledIsFollowedAndReported(t *testing.T) {
	p := plan(t, osInput(v1alpha1.Package{Name: "openssl", Version: "3.0.13-1"}))
	assert.Equal(t, []string{"PackageDowngrade"}, reasons(p.Findings))
}

func TestAPackageThatRunsOnlyAfterARebootBringsOne(t *testing.T) {
	in := osInput(v1alpha1.Package{Name: "linux-image-amd64"})
	p := plan(t, in)
	assert.Equal(t, []string{"Preflight", "InstallPackages linux-image-amd64=6.1.153-1", "Reboot", "Verify"}, outline(p))
	assert.Equal(t, v1alpha1.DisruptionReboot, p.Disruption)
	assert.Equal(t, "boot-1", p.Steps[len(p.Steps)-1].Expect.BootIDNot)

	in.Spec.OS.Reboot = v1alpha1.RebootNever
	p = plan(t, in)
	assert.Equal(t, v1alpha1.DisruptionNone, p.Disruption)
	assert.Equal(t, []string{"RebootNotAllowed"}, reasons(p.Findings))
}

func TestARebootThatTheHostAsksForNeedsAWishForIt(t *testing.T) {
	in := osInput()
	in.Facts.Reboot = RebootFacts{Required: true, Packages: []string{"libc6"}}
	assert.True(t, new(plan(t, in)).Empty(), "nobody asked Refit for it")
	in.Spec.OS.Reboot = v1alpha1.RebootIfRequired
	p := plan(t, in)
	assert.Equal(t, []string{"Preflight", "Reboot", "Verify"}, outline(p))
	assert.Contains(t, p.Steps[1].Reason, "libc6")
}

// What looks like an order to a package manager is refused again on the host.
func TestNamesAndVersionsThatAreOrdersAreRefused(t *testing.T) {
	for name, pkg := range map[string]v1alpha1.Package{
		"an option":        {Name: "kubelet --allow-downgrades"},
		"a path":           {Name: "../../x"},
		"a removal":        {Name: "openssl-"},
		"a shell command":  {Name: "openssl", Version: "3.0.15; rm -rf /"},
		"a second line":    {Name: "openssl", Version: "3.0.15\nx"},
		"an empty name":    {Name: ""},
		"a trailing order": {Name: "openssl", Version: "3.0.15+"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPlan(osInput(pkg))
			assert.True(t, requireBlocked(t, err, ReasonPackageInvalid).Terminal)
		})
	}
}

// dpkg has no capital letters, rpm has: what is never there would be absent for ever.
func TestANameThatNoPackageOfTheSystemCanHaveIsRefused(t *testing.T) {
	for _, state := range []v1alpha1.PackageState{"", v1alpha1.PackageAbsent} {
		in := osInput(v1alpha1.Package{Name: "OpenSSL", State: state})
		_, err := NewPlan(in)
		assert.True(t, requireBlocked(t, err, ReasonPackageInvalid).Terminal)
	}
	in := osInput(v1alpha1.Package{Name: "ImageMagick", State: v1alpha1.PackageAbsent})
	in.Facts.Packages.Manager = "dnf"
	assert.True(t, new(plan(t, in)).Empty())
}

func TestPackagesWithAFieldOfTheirOwnAreRefused(t *testing.T) {
	for _, name := range []string{"kubelet", "kubeadm", "kubectl", "containerd", "containerd.io", "cri-o"} {
		_, err := NewPlan(osInput(v1alpha1.Package{Name: name, Version: "1.0"}))
		assert.Contains(t, requireBlocked(t, err, ReasonPackageInvalid).Message, "spec.versions.")
	}
}

func TestWhatAHostIsReachedByIsNeverRemoved(t *testing.T) {
	for _, name := range []string{
		"openssh-server", "systemd", "libc6", "refit-agent", "linux-image-amd64", "linux-image-generic", "linux-image-6.1.0-28-amd64", "linux-generic", "linux-virtual",
		"grub-pc", "grub-efi-amd64", "grub2-common", "shim-signed", "kernel", "kernel-core", "udev", "netplan.io", "ifupdown", "login", "passwd", "kmod",
	} {
		in := osInput(v1alpha1.Package{Name: name, State: v1alpha1.PackageAbsent})
		in.Facts.OS.Kernel = "6.1.0-28-amd64"
		in.Facts.Packages.Installed = append(in.Facts.Packages.Installed, InstalledPackage{Name: name, Version: "1"})
		_, err := NewPlan(in)
		assert.Contains(t, requireBlocked(t, err, ReasonProtectedPackage).Message, name)
	}
	for _, name := range []string{"linux-image-6.1.0-20-amd64", "linux-headers-amd64", "linux-tools-generic", "kernel-devel", "grubby", "udevil", "telnet"} {
		in := osInput(v1alpha1.Package{Name: name, State: v1alpha1.PackageAbsent})
		in.Facts.OS.Kernel = "6.1.0-28-amd64"
		in.Facts.Packages.Installed = append(in.Facts.Packages.Installed, InstalledPackage{Name: name, Version: "1"})
		assert.Contains(t, outline(plan(t, in)), "InstallPackages "+name)
	}
}

func TestWhatRunsOnlyAfterARebootIsKnownByItsName(t *testing.T) {
	for _, name := range []string{
		"linux-image-amd64", "linux-generic", "linux-generic-hwe-24.04", "linux-aws", "linux-virtual", "kernel-core", "udev", "systemd", "systemd-udev", "microcode_ctl",
		"intel-microcode", "firmware-linux", "firmware-linux-nonfree", "linux-modules-6.8.0-50-generic",
	} {
		assert.True(t, needsReboot(name), name)
	}
	for _, name := range []string{"linux-headers-amd64", "linux-aws-headers-6.8.0", "linux-libc-dev", "linux-tools-generic", "kernel-devel", "kernel-headers", "libc6-dev", "openssl", "udevil"} {
		assert.False(t, needsReboot(name), name)
	}
}

// A package in the middle of something is not the version it says.
func TestAHalfConfiguredPackageIsNotInstalled(t *testing.T) {
	f := workerFacts("v1.36.3", "1.7.28")
	assert.True(t, isInstalled(f, "kubelet"))
	f.Packages.Installed[1].State = "half-configured"
	require.Equal(t, "kubelet", f.Packages.Installed[1].Name)
	assert.False(t, isInstalled(f, "kubelet"))
}

// The new agent is started by a step, which judges it; no agent runs where a host is planned for without a cluster.
func TestRefitsOwnPackageStartsItsAgentAnew(t *testing.T) {
	in := osInput(v1alpha1.Package{Name: "refit-agent", Version: "1.3.0-1"})
	in.Candidates = append(in.Candidates, offersOf("refit-agent", "1.3.0-1", "1.2.3-1")...)
	in.Facts.Packages.Installed = append(in.Facts.Packages.Installed, InstalledPackage{Name: "refit-agent", Version: "1.2.3-1"})
	p := plan(t, in)
	assert.Equal(t, []string{"Preflight", "InstallPackages refit-agent=1.3.0-1", "ReloadUnits", "RestartUnit refit-agent.service", "Verify"}, outline(p))
	assert.Equal(t, v1alpha1.DisruptionNone, p.Disruption, "no pod notices")
	assert.True(t, p.Steps[len(p.Steps)-1].Expect.Agent)

	in.Standalone = true
	p = plan(t, in)
	assert.Equal(t, []string{"Preflight", "InstallPackages refit-agent=1.3.0-1", "Verify"}, outline(p))
	assert.False(t, p.Steps[len(p.Steps)-1].Expect.Agent)
}
