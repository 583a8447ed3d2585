package artefacts

import "slices"

// Set says where the artefacts of a Config are. Paths of versions the Config did not name point nowhere.
type Set struct {
	cache  cache
	apt    string
	etcd   map[string]string // Kubernetes version: etcd version
	images []Image
}

func (m *maker) set() (*Set, error) {
	s := &Set{cache: m.cache, apt: m.cache.path(m.aptEntry()), etcd: map[string]string{}}
	for _, v := range m.Kubernetes {
		s.etcd[v] = m.cache.etcdVersion(v)
	}
	for _, b := range m.imageBuilds() {
		s.images = append(s.images, Image{Ref: b.ref(), Tar: m.cache.path(b.entry(), imageFile), Kubernetes: b.kubernetes})
	}
	return s, nil
}

// KubernetesBin is the path of kubelet, kubeadm, kubectl, kube-apiserver, kube-controller-manager, kube-scheduler or
// kube-proxy of that version.
func (s *Set) KubernetesBin(version, name string) string {
	return s.cache.path(kubernetesEntry(version), "bin", name)
}

// EtcdVersion is the etcd that kubeadm of that Kubernetes version runs.
func (s *Set) EtcdVersion(kubernetes string) string { return s.etcd[kubernetes] }

// EtcdBin is the path of etcd, etcdctl or etcdutl of that version.
func (s *Set) EtcdBin(version, name string) string {
	return s.cache.path(etcdEntry(version), "bin", name)
}

// ContainerdBin is the path of containerd, containerd-shim-runc-v2 or ctr of that version.
func (s *Set) ContainerdBin(version, name string) string {
	return s.cache.path(containerdEntry(version), "bin", name)
}

// RootFS is the base root filesystem of every host. It is shared: use it read-only, as the lower layer of an overlay.
func (s *Set) RootFS() string { return s.cache.path(rootfsEntry(), "root") }

// CacheDir is where the artefacts are, and where what is made from them may be kept.
func (s *Set) CacheDir() string { return s.cache.dir }

// AptDir is to be served over HTTP. Below it lie flat repositories (suite "/"): kubernetes/v1.37/deb/ for every minor,
// and containerd/deb/.
func (s *Set) AptDir() string { return s.apt }

// Keyring is the public key the repositories are signed with, as apt's signed-by takes it.
func (s *Set) Keyring() string { return s.cache.path(keyringEntry, publicKeyFile) }

// Images lists every image of the fleet. Their tags are those kubeadm asks for with the image repository
// registry.fleet.test.
func (s *Set) Images() []Image { return slices.Clone(s.images) }
