package upgrade

import (
	"slices"
	"strings"
)

// protected packages are never removed: without them nobody gets at the host again, or Refit does not.
var protected = []string{
	"apt", "base-files", "base-passwd", "bash", "coreutils", "dash", "dbus", "dnf", "dpkg", "glibc", "init", "initramfs-tools", "dracut", "kmod", "libc6", "libc-bin",
	"login", "mount", "openssh-server", "passwd", "rpm", "shadow-utils", "sudo", "systemd", "systemd-sysv", "udev", "util-linux", "zypper",
	"cri-tools", "kubernetes-cni", "runc",
	"ifupdown", "ifupdown2", "ifupdown-ng", "iproute2", "isc-dhcp-client", "dhcpcd-base", "netplan.io", "network-manager", "NetworkManager", "systemd-networkd", "systemd-resolved", "wicked",
}

// bootPackages begin the names of what a host boots with.
var bootPackages = []string{"grub", "grub2", "shim", "systemd-boot", "refind", "efibootmgr", "kernel", "kernel-default", "kernel-core"}

// isProtected says that a package may not be wished absent on a host that runs a kernel.
func isProtected(name, kernel string) bool {
	return slices.Contains(protected, name) || strings.HasPrefix(name, "refit") || boots(name) || bringsKernel(name, kernel)
}

func boots(name string) bool {
	return !looksLikeKernel(name) && slices.ContainsFunc(bootPackages, func(prefix string) bool {
		rest, found := strings.CutPrefix(name, prefix)
		return found && (rest == "" || rest[0] == '-')
	})
}

// bringsKernel says that a package is the kernel that runs, or the one by which newer ones
// come. Other kernels, which have a version in their name, may go.
func bringsKernel(name, kernel string) bool {
	if slices.ContainsFunc(kernelFlavours, func(of string) bool { return name == of || strings.HasPrefix(name, of+"-hwe") }) {
		return true
	}
	for _, prefix := range []string{"linux-image-", "linux-modules-", "linux-image-unsigned-", "linux-modules-extra-"} {
		rest, found := strings.CutPrefix(name, prefix)
		if found && rest != "" && (rest == kernel || !isDigit(rest[0]) && !strings.HasPrefix(rest, "unsigned-") && !strings.HasPrefix(rest, "extra-")) {
			return true
		}
	}
	return false
}

// kernelFlavours are packages of no content that depend on the newest kernel of a kind.
var kernelFlavours = []string{
	"linux-aws", "linux-azure", "linux-gcp", "linux-generic", "linux-gke", "linux-ibm", "linux-kvm", "linux-lowlatency", "linux-nvidia", "linux-oem",
	"linux-oracle", "linux-raspi", "linux-realtime", "linux-virtual",
}

// rebootPrefixes are packages whose new version runs only after a reboot.
var rebootPrefixes = append([]string{
	"linux-image", "linux-modules", "kernel", "libc6", "glibc", "systemd", "udev", "dbus",
	"intel-microcode", "amd64-microcode", "microcode_ctl", "ucode-intel", "ucode-amd", "linux-firmware", "firmware-linux", "kernel-firmware",
}, kernelFlavours...)

// looksLikeKernel says that a package is what one builds or looks at a kernel with, and not run by the host.
func looksLikeKernel(name string) bool {
	return slices.ContainsFunc([]string{"-headers", "-tools", "-doc", "-devel", "-dev"}, func(part string) bool { return strings.Contains(name+"-", part+"-") })
}

func needsReboot(name string) bool {
	return !looksLikeKernel(name) && slices.ContainsFunc(rebootPrefixes, func(prefix string) bool {
		return name == prefix || strings.HasPrefix(name, prefix+"-")
	})
}
