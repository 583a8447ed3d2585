package upgrade

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestWhatAHostCannotLoseIsKnownByItsName(t *testing.T) {
	const running = "6.8.0-50-generic"
	for kind, list := range map[string]string{
		"a boot loader": "grub-pc grub-pc-bin grub-efi grub-efi-amd64 grub-efi-amd64-bin grub-efi-amd64-signed grub-efi-arm64 grub-common grub2-common grub2-efi-x64 grub2-tools " +
			"grub2-tools-minimal grub2-pc grub2-x86_64-efi shim shim-signed shim-x64 shim-unsigned systemd-boot systemd-boot-efi extlinux syslinux refind u-boot-menu efibootmgr flash-kernel raspi-firmware",
		"a kernel": "linux-image-amd64 linux-image-generic linux-image-" + running + " linux-image-unsigned-" + running + " linux-modules-" + running + " linux-modules-extra-" + running + " " +
			"linux-image-rt-amd64 linux-image-cloud-arm64 linux-generic linux-generic-hwe-24.04 linux-aws linux-aws-lts-24.04 linux-azure-fips linux-lowlatency linux-generic-64k linux-oem-24.04b linux-raspi " +
			"linux-virtual kernel kernel-core kernel-modules kernel-modules-core kernel-default kernel-rt kernel-rt-core kernel-64k-core kernel-uek kernel-uek-core kernel-lt kernel-ml kernel-azure kernel-longterm " +
			"kernel-debug-core proxmox-default-kernel proxmox-kernel-6.8 pve-kernel-5.15 kernel-firmware kernel-firmware-bnx2 linux-firmware firmware-linux-nonfree",
		"init":              "init systemd systemd-sysv systemd-udev udev kmod dbus dbus-broker",
		"the C library":     "libc6 libc-bin glibc glibc-common libstdc++6 libgcc-s1",
		"a package manager": "dpkg apt rpm rpm-libs dnf dnf5 yum zypper libapt-pkg6.0 libapt-pkg6.0t64 libdnf libdnf5 librpm9 ca-certificates ca-certificates-mozilla debian-archive-keyring",
		"the network": "NetworkManager NetworkManager-libnm NetworkManager-team network-manager systemd-networkd systemd-resolved ifupdown ifupdown2 ifenslave netplan.io netplan-generator iproute2 iproute wicked dhcp-client " +
			"isc-dhcp-client dhcpcd-base wpasupplicant",
		"logging in":       "openssh-server openssh openssh-sftp-server sudo sudo-rs login passwd shadow-utils shadow pam libpam-modules libpam-runtime libpam-systemd libpam0g sssd sssd-ad libnss-sss authselect",
		"disks":            "cryptsetup cryptsetup-initramfs cryptsetup-luks libcryptsetup12 systemd-cryptsetup lvm2 lvm2-libs mdadm zfsutils-linux zfs-dkms zfs-initramfs zfs multipath-tools device-mapper-multipath open-iscsi iscsi-initiator-utils e2fsprogs xfsprogs btrfs-progs",
		"the way to boot":  "dracut dracut-network dracut-config-generic initramfs-tools initramfs-tools-core initramfs-tools-bin mkinitcpio",
		"Refit itself":     "refit refit-agent refit-executor",
		"what runs pods":   "runc crun cri-tools kubernetes-cni containernetworking-plugins conmon",
		"a needed library": "libsystemd0 libudev1 libmount1 libblkid1 libselinux1 libkmod2 libssl3t64",
	} {
		for name := range strings.FieldsSeq(list) {
			assert.True(t, isProtected(name, running), "%s is %s", name, kind)
		}
	}
}

func TestWhatAHostCanDoWithoutMayGo(t *testing.T) {
	const running = "6.8.0-50-generic"
	for name := range strings.FieldsSeq("telnet nginx vim udevil grubby grub-doc htop linux-image-6.8.0-31-generic linux-modules-6.8.0-31-generic linux-image-unsigned-6.8.0-31-generic linux-headers-amd64 " +
		"linux-headers-" + running + " linux-image-" + running + "-dbgsym linux-tools-generic linux-aws-headers-6.8.0-1012 linux-source linux-libc-dev kernel-devel kernel-headers kernel-tools kernel-doc kernel-default-devel kernel-source " +
		"kernel-srpm-macros kernel-debuginfo proxmox-kernel-6.8.12-4-pve-signed pve-kernel-5.15.108-1-pve libpam-doc libsystemd-dev systemd-devel systemd-container dracut-devel apt-file dnf-plugins-core rpm-build networkd-dispatcher " +
		"openssh-client sudoku initramfs zfs-doc libssl-dev openssl-dev docker-ce snapd") {
		assert.False(t, isProtected(name, running), name)
	}
	assert.True(t, isProtected("proxmox-kernel-6.8.12-4-pve-signed", "6.8.12-4-pve"), "the one that runs stays")
}

// It holds on hosts of rpm as on those of apt.
func TestARemovalOfWhatAHostCannotLoseIsRefused(t *testing.T) {
	for manager, name := range map[string]string{"apt": "network-manager", "dnf": "NetworkManager", "zypper": "NetworkManager"} {
		in := osInput(v1alpha1.Package{Name: name, State: v1alpha1.PackageAbsent})
		in.Facts.Packages.Manager = manager
		in.Facts.Packages.Installed = append(in.Facts.Packages.Installed, InstalledPackage{Name: name, Version: "1.48.10-1.el9"})
		_, err := NewPlan(in)
		assert.True(t, requireBlocked(t, err, ReasonProtectedPackage).Terminal)
	}
}
