package upgrade

import (
	"regexp"
	"slices"
	"strings"
)

// protected packages are never removed: without them nobody gets at the host again, it does
// not come up, or Refit does not. Names of apt and of rpm hosts, by what they are for.
var protected = slices.Concat(
	// What every program builds on.
	names("aaa_base base-files base-passwd bash bsdutils coreutils coreutils-common coreutils-single coreutils-from-uutils gnu-coreutils rust-coreutils dash debianutils"),
	names("diffutils findutils grep gzip hostname sed tar perl-base ncurses-base ncurses-bin util-linux util-linux-core util-linux-systemd mount setup filesystem basesystem"),
	names("libc6 libc-bin glibc glibc-common glibc-minimal-langpack musl libcrypt1 libxcrypt libgcc libgcc-s1 libstdc++6 libstdc++ zlib1g zlib"),
	names("redhat-release rocky-release almalinux-release centos-stream-release fedora-release fedora-release-common oraclelinux-release openSUSE-release sles-release"),
	// Init, devices, modules, the system bus.
	names("init init-system-helpers sysvinit-core sysvinit-utils systemd systemd-sysv systemd-libs systemd-shared systemd-pam systemd-udev systemd-cryptsetup udev kmod kmod-libs dkms"),
	names("dbus dbus-bin dbus-broker dbus-common dbus-daemon dbus-libs dbus-system-bus-common"),
	// Package managers and whom they trust.
	names("apt apt-utils dpkg debconf gpgv sqv debian-archive-keyring ubuntu-keyring ca-certificates ca-certificates-mozilla crypto-policies openssl-libs"),
	names("rpm rpm-libs dnf dnf5 dnf-data yum microdnf python3-dnf python3-rpm platform-python zypper libzypp"),
	// Logging in.
	names("openssh openssh-server openssh-sftp-server openssh-common dropbear dropbear-bin dropbear-initramfs tinysshd amazon-ssm-agent login passwd adduser"),
	names("shadow shadow-utils sudo sudo-ldap sudo-rs doas opendoas pam pam-config authselect authselect-libs selinux-policy selinux-policy-targeted policycoreutils"),
	// The network.
	names("ifupdown ifupdown2 ifupdown-ng ifenslave vlan bridge-utils iproute2 iproute ethtool iptables iptables-libs iptables-nft nftables"),
	names("netplan.io netplan-generator network-manager systemd-networkd systemd-resolved resolvconf openresolv wicked wicked-service connman initscripts network-scripts"),
	names("isc-dhcp-client dhcp-client dhclient dhcpcd dhcpcd-base udhcpc teamd openvswitch openvswitch-switch"),
	names("wpasupplicant wpa_supplicant iwd modemmanager ModemManager wireguard-tools tailscale openvpn strongswan"),
	// Disks and file systems.
	names("dmsetup dmeventd dmraid kpartx multipath-tools multipath-tools-boot iscsi-initiator-utils nvme-cli nbd-client fcoe-utils keyutils thin-provisioning-tools"),
	names("e2fsprogs xfsprogs btrfs-progs btrfsprogs dosfstools f2fs-tools bcachefs-tools kmod-zfs tpm2-tools nfs-common nfs-utils nfs-client"),
	// The way to boot.
	names("efibootmgr lilo elilo extlinux syslinux syslinux-common syslinux-efi limine sdubby flash-kernel yaboot mokutil zipl s390-tools s390utils-base s390utils-core powerpc-utils"),
	names("raspi-firmware raspberrypi-bootloader raspberrypi-kernel rpi-eeprom initramfs-tools initramfs-tools-core initramfs-tools-bin mkinitcpio mkinitrd busybox-initramfs klibc-utils linux-firmware"),
	// What runs containers.
	names("cri-tools kubernetes-cni containernetworking-plugins runc crun conmon container-selinux containers-common etcd etcd-server"),
)

// protectedFamilies are protected by the beginning of their names: the name itself, or the
// name and a dash. kernelFamilies are those of kernels, around which there is more that may go.
var (
	protectedFamilies = names("refit grub grub2 shim systemd-boot refind u-boot firmware-linux firmware-misc " +
		"NetworkManager sssd libpam libnss clevis cryptsetup lvm2 mdadm zfs zfsutils device-mapper open-iscsi dracut proxmox-default-kernel")
	kernelFamilies = names("kernel")
)

// protectedLibraries are what the above cannot run without, whatever their number.
var protectedLibraries = regexp.MustCompile(`^lib(apt-pkg|blkid|cryptsetup|devmapper|dnf|kmod|mount|netplan|pam|rpm|selinux|solv|ssl|systemd|udev|zfs|zpool|zypp)[0-9.gt-]*$`)

// isProtected says that a package may not be wished absent on a host that runs a kernel.
func isProtected(name, kernel string) bool {
	return slices.Contains(protected, name) || protectedLibraries.MatchString(name) || bringsKernel(name, kernel) ||
		!contains(name, aboutParts) && slices.ContainsFunc(protectedFamilies, ofFamily(name)) ||
		!isAccessory(name) && slices.ContainsFunc(kernelFamilies, ofFamily(name))
}

func ofFamily(name string) func(family string) bool {
	return func(family string) bool {
		rest, found := strings.CutPrefix(name, family)
		return found && (rest == "" || rest[0] == '-')
	}
}

func names(list string) []string { return strings.Fields(list) }

// kernelFlavours are packages of no content that depend on the newest kernel of a kind.
var kernelFlavours = names("linux-allwinner linux-aws linux-azure linux-azure-fde linux-bluefield linux-fips linux-gcp linux-generic linux-gke linux-gkeop linux-ibm linux-intel " +
	"linux-intel-iotg linux-iot linux-kvm linux-laptop linux-lowlatency linux-nvidia linux-nvidia-tegra linux-oem linux-oracle linux-raspi linux-realtime linux-riscv linux-starfive " +
	"linux-virtual linux-xanmod linux-xilinx-zynqmp")

var (
	// flavourSuffix is what the name of such a package may have behind the flavour: linux-generic-hwe-24.04, linux-aws-lts-24.04.
	flavourSuffix = regexp.MustCompile(`^(-(hwe|lts|edge|fips|fde|64k|rt|realtime|x64v[0-9]|[0-9]{2}\.[0-9]{2}[a-z]?))*$`)
	// kernelImage is the name of a package with a kernel or its modules in it: what is behind is a version, or a flavour.
	kernelImage = regexp.MustCompile(`^(?:linux-(?:signed-)?(?:image|modules)-(?:unsigned-|extra-)?|(?:pve|proxmox)-kernel-(?:signed-)?)(.+?)(?:-signed)?$`)
	// kernelSeries is a version that follows the newest kernel of a series: proxmox-kernel-6.8.
	kernelSeries = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)
)

// bringsKernel says that a package is the kernel that runs, or the one by which newer ones
// come. Other kernels, which have a version in their name, may go.
func bringsKernel(name, kernel string) bool {
	if slices.ContainsFunc(kernelFlavours, func(of string) bool {
		rest, found := strings.CutPrefix(name, of)
		return found && flavourSuffix.MatchString(rest)
	}) {
		return true
	}
	m := kernelImage.FindStringSubmatch(name)
	return m != nil && !isAccessory(name) && (m[1] == kernel || !isDigit(m[1][0]) || kernelSeries.MatchString(m[1]))
}

// rebootPrefixes are packages whose new version runs only after a reboot.
var rebootPrefixes = append([]string{
	"linux-image", "linux-modules", "kernel", "libc6", "glibc", "systemd", "udev", "dbus",
	"intel-microcode", "amd64-microcode", "microcode_ctl", "ucode-intel", "ucode-amd", "linux-firmware", "firmware-linux", "kernel-firmware",
}, kernelFlavours...)

// aboutParts are in the names of what one builds with or reads about a program, and
// accessoryParts, for kernels, of what one looks at it with too.
var (
	aboutParts     = names("-doc -docs -devel -dev -dbg -dbgsym -debuginfo -debugsource")
	accessoryParts = append(names("-headers -tools -source -syms -macros -selftests"), aboutParts...)
)

// isAccessory says that a package is what one builds or looks at a kernel with, and not run by the host.
func isAccessory(name string) bool { return contains(name, accessoryParts) }

// contains says that a name has one of some parts in it, whole.
func contains(name string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name+"-", part+"-") })
}

func needsReboot(name string) bool {
	return !isAccessory(name) && slices.ContainsFunc(rebootPrefixes, func(prefix string) bool {
		return name == prefix || strings.HasPrefix(name, prefix+"-")
	})
}
