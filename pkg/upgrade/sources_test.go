package upgrade

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func kubeletTarget(version string) v1alpha1.Target {
	return v1alpha1.Target{Versions: v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(version)}}
}

func uris(r CandidateRequest) []string {
	var out []string
	for _, s := range r.Sources {
		out = append(out, s.URI)
	}
	return out
}

// withSource is a worker whose Kubernetes packages come from one source.
func withSource(uri string, provides ...string) Facts {
	f := workerFacts("v1.29.6", "1.7.28")
	f.Packages.Sources = []SourceFacts{
		{File: "/etc/apt/sources.list", URI: debianURI, Suites: []string{"bookworm"}, Provides: []string{"containerd", "runc"}},
		{File: "/etc/apt/sources.list.d/k8s.list", URI: uri, Suites: []string{"/"}, SignedBy: "/etc/apt/keyrings/k8s.gpg", Provides: provides},
	}
	return f
}

func TestTheHostsOwnRepositoryFollowsTheMinor(t *testing.T) {
	for name, tc := range map[string]struct{ uri, want string }{
		"the public layout":          {"https://pkgs.k8s.io/core:/stable:/v1.29/deb/", "https://pkgs.k8s.io/core:/stable:/v1.30/deb/"},
		"a mirror with the minor":    {"http://mirror.corp/k8s/v1.29/", "http://mirror.corp/k8s/v1.30/"},
		"the minor at the very end":  {"http://mirror.corp/k8s/v1.29", "http://mirror.corp/k8s/v1.30"},
		"a mirror without a minor":   {"http://mirror.corp/kubernetes/", ""},
		"the legacy address":         {"https://apt.kubernetes.io/", ""},
		"the target's minor already": {"http://mirror.corp/v1.30/deb/", ""},
		"a patch is no minor":        {"http://mirror.corp/v1.29.6/deb/", ""},
		"part of a word is no minor": {"http://mirror.corp/kubernetes-v1.29/deb/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			request, changes, err := Sources(withSource(tc.uri, "kubelet", "kubeadm"), kubeletTarget("v1.30.4"), worker())
			require.NoError(t, err)
			if tc.want == "" {
				assert.Empty(t, changes)
				assert.Contains(t, uris(request), tc.uri)
				return
			}
			require.Len(t, changes, 1)
			assert.Equal(t, SourceChange{Name: "k8s", File: "/etc/apt/sources.list.d/k8s.list", From: tc.uri, To: tc.want}, changes[0])
			assert.Contains(t, uris(request), tc.want)
			assert.NotContains(t, uris(request), tc.uri)
		})
	}
}

func TestASourceInSpecWinsOverTheHosts(t *testing.T) {
	spec := worker()
	spec.PackageSources = []v1alpha1.PackageSource{{Name: "kubernetes", URI: "https://mirror.corp/kubernetes/{minor}/deb/", Suites: []v1alpha1.SourceWord{"/"}, SignedBy: "refit-kubernetes"}}
	t.Run("it takes the place of the one that offers the packages", func(t *testing.T) {
		request, changes, err := Sources(withSource("https://pkgs.k8s.io/core:/stable:/v1.29/deb/", "kubelet"), kubeletTarget("v1.30.4"), spec)
		require.NoError(t, err)
		require.Len(t, changes, 1)
		assert.Equal(t, SourceChange{
			Name: "kubernetes", File: "/etc/apt/sources.list.d/k8s.list", From: "https://pkgs.k8s.io/core:/stable:/v1.29/deb/", To: "https://mirror.corp/kubernetes/v1.30/deb/",
			Suites: []string{"/"}, Components: []string{}, SignedBy: "refit-kubernetes",
			Was: &SourceWords{Suites: []string{"/"}, SignedBy: "/etc/apt/keyrings/k8s.gpg"},
		}, changes[0])
		assert.Contains(t, uris(request), "https://mirror.corp/kubernetes/v1.30/deb/")
		assert.NotContains(t, uris(request), "https://pkgs.k8s.io/core:/stable:/v1.29/deb/")
	})
	t.Run("it is added where there is none", func(t *testing.T) {
		f := withSource("http://x.example/", "nothing")
		f.Packages.Sources = nil
		_, changes, err := Sources(f, kubeletTarget("v1.30.4"), spec)
		require.NoError(t, err)
		require.Len(t, changes, 1)
		assert.Equal(t, "/etc/apt/sources.list.d/kubernetes.sources", changes[0].File)
		assert.Empty(t, changes[0].From)
	})
	t.Run("it is left alone when it is there already", func(t *testing.T) {
		f := withSource("https://mirror.corp/kubernetes/v1.30/deb/", "kubelet")
		f.Packages.Sources[1].SignedBy = "/usr/share/keyrings/refit-kubernetes.gpg"
		_, changes, err := Sources(f, kubeletTarget("v1.30.4"), spec)
		require.NoError(t, err)
		assert.Empty(t, changes)
	})
	t.Run("it wins where only its words are others", func(t *testing.T) {
		const uri = "https://mirror.corp/kubernetes/v1.30/deb/"
		for name, words := range map[string]SourceWords{
			"keyring":    {Suites: []string{"/"}, SignedBy: "/etc/apt/keyrings/k8s.gpg"},
			"no keyring": {Suites: []string{"/"}},
			"suite":      {Suites: []string{"stable"}, SignedBy: "/etc/apt/keyrings/refit-kubernetes.gpg"},
			"component":  {Suites: []string{"/"}, Components: []string{"main"}, SignedBy: "/etc/apt/keyrings/refit-kubernetes.gpg"},
		} {
			f := withSource(uri, "kubelet")
			f.Packages.Sources[1].Suites, f.Packages.Sources[1].Components, f.Packages.Sources[1].SignedBy = words.Suites, words.Components, words.SignedBy
			_, changes, err := Sources(f, kubeletTarget("v1.30.4"), spec)
			require.NoError(t, err)
			require.Len(t, changes, 1, name)
			assert.Equal(t, uri, changes[0].From)
			assert.Equal(t, uri, changes[0].To)
			assert.Equal(t, "refit-kubernetes", changes[0].SignedBy)
			assert.Equal(t, &words, changes[0].Was, name)
			assert.Equal(t, changes[0], changes[0].Back().Back())
		}
	})
}

// A repository of rpm has no suites, and its file names keys by their URLs.
func TestASourceOfRPMInSpecIsComparedAsRPMHasIt(t *testing.T) {
	const uri, old = "https://mirror.corp/kubernetes/v1.30/rpm/", "https://mirror.corp/kubernetes/v1.29/rpm/"
	for name, tc := range map[string]struct {
		key      string
		suites   []v1alpha1.SourceWord
		restated bool
	}{
		"the key by its own name":                 {key: "file:///etc/pki/rpm-gpg/refit-kubernetes"},
		"the key with an ending":                  {key: "file:///etc/pki/rpm-gpg/refit-kubernetes.asc"},
		"the key by a path":                       {key: "/etc/pki/rpm-gpg/refit-kubernetes.asc"},
		"the key with rpm's prefix":               {key: "file:///etc/pki/rpm-gpg/RPM-GPG-KEY-refit-kubernetes"},
		"the key with rpm's prefix and an ending": {key: "file:///etc/pki/rpm-gpg/RPM-GPG-KEY-refit-kubernetes.gpg"},
		"a flat suite in spec":                    {key: "file:///etc/pki/rpm-gpg/refit-kubernetes", suites: []v1alpha1.SourceWord{"/"}},
		"a suite of apt's in spec":                {key: "file:///etc/pki/rpm-gpg/refit-kubernetes", suites: []v1alpha1.SourceWord{"bookworm"}},
		"another key":                             {key: "file:///etc/pki/rpm-gpg/RPM-GPG-KEY-kubernetes", restated: true},
		"a key whose name only ends so":           {key: "file:///etc/pki/rpm-gpg/not-refit-kubernetes", restated: true},
		"another key besides":                     {key: "file:///etc/pki/rpm-gpg/other file:///etc/pki/rpm-gpg/refit-kubernetes", restated: true},
		"a key to be fetched":                     {key: "https://mirror.corp/refit-kubernetes.asc", restated: true},
		"no key":                                  {restated: true},
	} {
		for _, manager := range []string{"dnf", "zypper"} {
			t.Run(manager+": "+name, func(t *testing.T) {
				f := withSource(uri, "kubelet")
				f.Packages.Manager = manager
				f.Packages.Sources = []SourceFacts{{File: newSourceFile(manager, "k8s"), URI: uri, SignedBy: tc.key, Provides: []string{"kubelet"}}}
				spec := worker()
				spec.PackageSources = []v1alpha1.PackageSource{{Name: "kubernetes", URI: "https://mirror.corp/kubernetes/{minor}/rpm/", Suites: tc.suites, SignedBy: "refit-kubernetes"}}
				request, changes, err := Sources(f, kubeletTarget("v1.30.4"), spec)
				require.NoError(t, err)
				require.Len(t, request.Sources, 1)
				assert.Empty(t, request.Sources[0].Suites)
				assert.Empty(t, request.Sources[0].Components)
				if !tc.restated {
					assert.Empty(t, changes)
				} else {
					require.Len(t, changes, 1)
					assert.Equal(t, SourceChange{Name: "kubernetes", File: newSourceFile(manager, "k8s"), From: uri, To: uri, SignedBy: "refit-kubernetes", Was: &SourceWords{SignedBy: tc.key}}, changes[0])
				}

				f.Packages.Sources[0].URI = old
				_, changes, err = Sources(f, kubeletTarget("v1.30.4"), spec)
				require.NoError(t, err)
				require.Len(t, changes, 1)
				assert.Equal(t, tc.restated, changes[0].Was != nil, "the key is told with the URI only where it is another")
			})
		}
	}
}

func TestNoRepositoryIsGuessed(t *testing.T) {
	_, _, err := Sources(withSource("https://pkgs.k8s.io/core:/stable:/v1.29/deb/"), kubeletTarget("v1.30.4"), worker())
	blocked := requireBlocked(t, err, ReasonSourceUnknown)
	assert.False(t, blocked.Terminal, "refreshed package lists make it pass")

	_, _, err = Sources(withSource("https://a.example/v1.29/v1.28/deb/", "kubelet"), kubeletTarget("v1.30.4"), worker())
	requireBlocked(t, err, ReasonSourceAmbiguous)

	two := withSource("https://a.example/v1.28/deb/", "kubelet")
	two.Packages.Sources = append(two.Packages.Sources, SourceFacts{File: "/etc/apt/sources.list.d/b.list", URI: "https://b.example/v1.27/deb/", Provides: []string{"kubelet"}})
	_, _, err = Sources(two, kubeletTarget("v1.30.4"), worker())
	requireBlocked(t, err, ReasonSourceAmbiguous)

	two.Packages.Sources[1].URI = "https://a.example/v1.29/deb/"
	_, changes, err := Sources(two, kubeletTarget("v1.30.4"), worker())
	require.NoError(t, err, "the one that the installed kubelet is from is the obvious one")
	require.Len(t, changes, 1)
	assert.Equal(t, "https://a.example/v1.30/deb/", changes[0].To)
}

func TestARepositoryThatIsWrittenDownTwiceIsOne(t *testing.T) {
	const uri, next = "https://a.example/v1.29/deb/", "https://a.example/v1.30/deb/"
	for name, file := range map[string]string{"in one file": "/etc/apt/sources.list.d/k8s.list", "in two files": "/etc/apt/sources.list.d/other.list"} {
		t.Run(name, func(t *testing.T) {
			f := withSource(uri, kubernetesPackages...)
			f.Packages.Sources = append(f.Packages.Sources, SourceFacts{File: file, Line: 2, URI: uri, Suites: []string{"/"}, Provides: []string{"kubelet"}})
			request, changes, err := Sources(f, kubeletTarget("v1.30.4"), worker())
			require.NoError(t, err)
			files := map[string]string{}
			for _, c := range changes {
				assert.Equal(t, uri, c.From)
				assert.NotContains(t, files, c.File, "a file is switched once")
				files[c.File] = c.To
			}
			assert.Equal(t, map[string]string{"/etc/apt/sources.list.d/k8s.list": next, file: next}, files)
			assert.Equal(t, []string{next}, uris(request))
		})
	}
}

func TestASourceOfTheTargetsMinorThatIsThereIsEnough(t *testing.T) {
	f := withSource("https://a.example/v1.29/deb/", "kubelet")
	f.Packages.Sources = append(f.Packages.Sources, SourceFacts{File: "/etc/apt/sources.list.d/next.list", URI: "https://a.example/v1.30/deb/", Provides: []string{"kubelet"}})
	request, changes, err := Sources(f, kubeletTarget("v1.30.4"), worker())
	require.NoError(t, err)
	assert.Empty(t, changes)
	assert.Contains(t, uris(request), "https://a.example/v1.30/deb/")
}

func TestAPatchNeedsNoRepositoryToBeKnown(t *testing.T) {
	request, changes, err := Sources(withSource("https://pkgs.k8s.io/core:/stable:/v1.29/deb/"), kubeletTarget("v1.29.9"), worker())
	require.NoError(t, err)
	assert.Empty(t, changes)
	assert.Len(t, request.Sources, 2, "the packages could be in any of them")
}

func TestOnlyRepositoriesThatOfferSomethingAreLookedInto(t *testing.T) {
	request, _, err := Sources(workerFacts("v1.36.3", "1.7.28"), kubeletTarget("v1.37.2"), worker())
	require.NoError(t, err)
	assert.Equal(t, []string{fmt.Sprintf(k8sURI, "v1.37")}, uris(request))
	assert.Equal(t, []string{"cri-tools", "kubeadm", "kubectl", "kubelet", "kubernetes-cni"}, request.Packages)

	target := kubeletTarget("v1.37.2")
	target.ContainerRuntime = containerdAt("2.4.2")
	request, _, err = Sources(workerFacts("v1.36.3", "1.7.28"), target, worker())
	require.NoError(t, err)
	assert.Equal(t, []string{debianURI, fmt.Sprintf(k8sURI, "v1.37")}, uris(request))
	assert.Contains(t, request.Packages, "containerd")
	assert.NotContains(t, request.Packages, "containerd.io", "that is not the one installed here")
}

func TestADistributionIsNotFetchedForAHelper(t *testing.T) {
	f := workerFacts("v1.36.3", "1.7.28")
	f.Packages.Sources[0].Provides = []string{"runc"}
	f.Packages.Sources = append(f.Packages.Sources, SourceFacts{File: "/etc/apt/sources.list.d/containerd.list", URI: "https://c.example/", Suites: []string{"/"}, Provides: []string{"containerd"}})
	request, _, err := Sources(f, v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt("2.4.2")}}, worker())
	require.NoError(t, err)
	assert.Equal(t, []string{"https://c.example/"}, uris(request))
}

func TestAHelperThatSpecNamesIsLookedFor(t *testing.T) {
	f := workerFacts("v1.36.3", "1.7.28")
	f.Packages.Sources[1].Provides = append([]string{"cri-tools", "kubernetes-cni"}, kubernetesPackages...)
	for _, name := range Helpers {
		t.Run(name, func(t *testing.T) {
			spec := worker()
			spec.OS = &v1alpha1.OSSpec{Packages: []v1alpha1.Package{{Name: name, Version: "1.9.9-1"}}}
			target := v1alpha1.Target{OS: true}
			request, _, err := Sources(f, target, spec)
			require.NoError(t, err)
			require.Len(t, request.Sources, 1, "its repository and no other")
			p := plan(t, PlanInput{
				Machine: "w1", Spec: spec, Facts: f, Assignment: v1alpha1.Assignment{ID: "1-a", Target: target},
				Candidates: []Candidate{candidate(name, "1.9.9-1", request.Sources[0].URI)},
			})
			assert.Contains(t, outline(p), "InstallPackages "+name+"=1.9.9-1")

			target.Kubelet = "v1.36.4"
			request, _, err = Sources(f, target, spec)
			require.NoError(t, err)
			assert.Contains(t, request.Packages, name)
			assert.True(t, slices.ContainsFunc(f.Packages.Sources, func(s SourceFacts) bool {
				return slices.Contains(s.Provides, name) && slices.Contains(uris(request), s.URI)
			}), "nor together with a kubelet")
		})
	}
}

func TestNothingWantedNeedsNoRepository(t *testing.T) {
	request, changes, err := Sources(workerFacts("v1.36.3", "1.7.28"), v1alpha1.Target{}, worker())
	require.NoError(t, err)
	assert.Empty(t, request)
	assert.Empty(t, changes)
}

func TestCRIOHasARepositoryPerMinorOfItsOwn(t *testing.T) {
	f := withSource("https://pkgs.k8s.io/core:/stable:/v1.29/deb/", "kubelet")
	f.Runtime = &RuntimeFacts{Name: "cri-o", Running: "1.29.4"}
	f.Packages.Sources = append(f.Packages.Sources, SourceFacts{File: "/etc/apt/sources.list.d/cri-o.list", URI: "https://pkgs.k8s.io/addons:/cri-o:/stable:/v1.29/deb/", Provides: []string{"cri-o"}})
	target := v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: &v1alpha1.ContainerRuntime{Name: v1alpha1.RuntimeCRIO, Version: "1.30.3"}}}
	_, changes, err := Sources(f, target, worker())
	require.NoError(t, err)
	require.Len(t, changes, 1)
	assert.Equal(t, "https://pkgs.k8s.io/addons:/cri-o:/stable:/v1.30/deb/", changes[0].To)
}

// A host whose package lists are empty says of CRI-O what is to be done about CRI-O.
func TestCRIOWithoutAPackageListIsToldWhichRepositoryToName(t *testing.T) {
	f := workerFacts("v1.37.2", "1.7.28")
	f.Runtime = &RuntimeFacts{Name: "cri-o", Running: "1.36.4"}
	f.Packages.Sources = []SourceFacts{{File: "/etc/apt/sources.list.d/cri-o.list", URI: "https://mirror.corp/cri-o/v1.36/deb/"}}
	f.Packages.Installed = append(f.Packages.Installed, InstalledPackage{Name: "cri-o", Version: "1.36.4-1.1"})
	target := v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: &v1alpha1.ContainerRuntime{Name: v1alpha1.RuntimeCRIO, Version: "1.37.1"}}}
	_, _, err := Sources(f, target, worker())
	blocked := requireBlocked(t, err, ReasonSourceUnknown)
	assert.Contains(t, blocked.Message, "the repository of cri-o v1.37")
	assert.Contains(t, blocked.Message, `as "cri-o"`)

	t.Run("which helps, and has its own minor", func(t *testing.T) {
		spec := worker()
		spec.PackageSources = []v1alpha1.PackageSource{{Name: "cri-o", URI: "https://mirror.corp/cri-o/{minor}/deb/", SignedBy: "crio"}}
		target := target
		target.Kubelet = "v1.37.3"
		request, changes, err := Sources(f, target, spec)
		require.NoError(t, err)
		assert.Contains(t, uris(request), "https://mirror.corp/cri-o/v1.37/deb/")
		require.Len(t, changes, 1)
		assert.Equal(t, "/etc/apt/sources.list.d/cri-o.list", changes[0].File)
	})
	t.Run("where CRI-O stays it is that of CRI-O, whatever Kubernetes becomes", func(t *testing.T) {
		spec := worker()
		spec.PackageSources = []v1alpha1.PackageSource{{Name: "cri-o", URI: "https://mirror.corp/cri-o/{minor}/deb/", SignedBy: "crio"}}
		request, _, err := Sources(f, kubeletTarget("v1.37.3"), spec)
		require.NoError(t, err)
		assert.Contains(t, uris(request), "https://mirror.corp/cri-o/v1.36/deb/")
	})
}
