package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/test/fleet/hosts"
)

const (
	// MirrorHost is how hosts name the apt mirror.
	MirrorHost = "mirror.fleet.test"

	keyringPath = "/etc/apt/keyrings/refit-kubernetes.gpg"
)

// Packages says what a new host has installed.
type Packages struct {
	Kubernetes string // v1.36.3
	Containerd string // v1.7.27
	AptDir     string // the mirror's directory
	Keyring    string // the public key of its repositories
	Base       string // the root filesystem below
	CacheDir   string // where layers are kept
}

// Layer describes the disk layer with the packages installed from the mirror. Its directory is named after all it is made
// from, so that another base or rebuilt packages make another layer.
func (p Packages) Layer(site hosts.Site, program string) (hosts.Layer, error) {
	files, err := p.files(site)
	if err != nil {
		return hosts.Layer{}, err
	}
	commands := p.commands()
	key, err := p.key(files, commands, site)
	if err != nil {
		return hosts.Layer{}, err
	}
	name := fmt.Sprintf("kubernetes-%s-containerd-%s-%s", p.Kubernetes, p.Containerd, key)
	return hosts.Layer{
		Site: site, Program: program, Base: p.Base, Dir: filepath.Join(p.CacheDir, "layers", name),
		Files: files, Commands: commands, Env: []string{"DEBIAN_FRONTEND=noninteractive"},
	}, nil
}

// The packages are on hold, as kubeadm's manual asks for.
func (p Packages) commands() [][]string {
	install := []string{"apt-get", "install", "--yes", "--no-install-recommends"}
	for _, name := range []string{"kubelet", "kubeadm", "kubectl"} {
		install = append(install, name+"="+DebVersion(p.Kubernetes))
	}
	install = append(install, "containerd.io="+strings.TrimPrefix(p.Containerd, "v")+"-1")
	return [][]string{
		{"apt-get", "update"},
		install,
		{"apt-mark", "hold", "kubelet", "kubeadm", "kubectl"},
		{"apt-get", "clean"},
	}
}

// DebVersion is the package version of a Kubernetes version in its first packaging.
func DebVersion(kubernetes string) string { return strings.TrimPrefix(kubernetes, "v") + "-1.1" }

// KubernetesSource is the apt source of one minor of Kubernetes.
func KubernetesSource(kubernetes string) string {
	return aptSource("kubernetes/" + Minor(kubernetes) + "/deb")
}

// Minor is the minor of a version: v1.36 of v1.36.3.
func Minor(version string) string { return version[:strings.LastIndex(version, ".")] }

func aptSource(path string) string {
	return fmt.Sprintf("deb [signed-by=%s] http://%s/%s/ /\n", keyringPath, MirrorHost, path)
}

func (p Packages) files(site hosts.Site) ([]hosts.File, error) {
	key, err := os.ReadFile(p.Keyring)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the mirror: %w", err)
	}
	return []hosts.File{
		{Path: keyringPath, Content: key, Mode: 0o644},
		{Path: "/etc/apt/sources.list.d/kubernetes.list", Content: []byte(KubernetesSource(p.Kubernetes)), Mode: 0o644},
		{Path: "/etc/apt/sources.list.d/containerd.list", Content: []byte(aptSource("containerd/deb")), Mode: 0o644},
		{Path: "/etc/hosts", Content: []byte(fleetNames(site)), Mode: 0o644},
	}, nil
}

// key digests what the layer is made from, except the address of this fleet's mirror, which no host keeps.
func (p Packages) key(files []hosts.File, commands [][]string, site hosts.Site) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, filepath.Base(filepath.Dir(p.Base)), p.Base)
	for _, f := range files {
		if f.Path != "/etc/hosts" {
			fmt.Fprintf(h, "%s %o %x\n", f.Path, f.Mode, f.Content)
		}
	}
	fmt.Fprintln(h, commands)
	for _, repo := range []string{"kubernetes/" + Minor(p.Kubernetes) + "/deb", "containerd/deb"} {
		index, err := os.ReadFile(filepath.Join(p.AptDir, repo, "Packages"))
		if err != nil {
			return "", fmt.Errorf("reading the index of repository %s: %w", repo, err)
		}
		h.Write(index)
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}
