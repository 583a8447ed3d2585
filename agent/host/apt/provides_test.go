package apt

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// minors serves one repository per minor, as the public one does.
func minors(t *testing.T, repositories map[string]*repository) string {
	t.Helper()
	mux := http.NewServeMux()
	for minor, r := range repositories {
		prefix := "/" + minor
		mux.Handle(prefix+"/deb/", http.StripPrefix(prefix, r))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// facts are those of a worker with its real sources.
func (h *host) facts(kubelet string) upgrade.Facts {
	h.t.Helper()
	sources, err := h.Sources(h.t.Context(), []string{"kubelet", "kubeadm"})
	require.NoError(h.t, err)
	for i := range sources { // apt takes a keyring's path as it is, Refit as one below the root
		sources[i].SignedBy = strings.TrimPrefix(sources[i].SignedBy, h.Root)
	}
	version := strings.TrimPrefix(kubelet, "v") + "-1.1"
	return upgrade.Facts{
		OS:      upgrade.OSFacts{Family: "apt"},
		Kubelet: &upgrade.ComponentFacts{Running: kubelet, Installed: kubelet, Unit: "kubelet.service", Active: true},
		Packages: upgrade.PackageFacts{Manager: "apt", Sources: sources, Installed: []upgrade.InstalledPackage{
			{Name: "kubelet", Version: version, State: "installed"}, {Name: "kubeadm", Version: version, State: "installed"},
		}},
	}
}

// plan does what an agent does: sources, candidates, plan.
func (h *host) plan(from, to string) upgrade.Plan {
	h.t.Helper()
	versions := v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(to)}
	in := upgrade.PlanInput{
		Facts: h.facts(from), Assignment: v1alpha1.Assignment{ID: "1-a", Type: v1alpha1.OperationUpgrade, Target: v1alpha1.Target{Versions: versions}},
		Spec: v1alpha1.MachineSpec{Roles: []v1alpha1.Role{v1alpha1.RoleWorker}}, Standalone: true,
	}
	request, _, err := upgrade.Sources(in.Facts, in.Assignment.Target, in.Spec)
	require.NoError(h.t, err)
	in.Candidates, err = h.Candidates(h.t.Context(), request)
	require.NoError(h.t, err)
	plan, err := upgrade.NewPlan(in)
	require.NoError(h.t, err)
	return plan
}

func kubernetesDebs(versions ...string) []deb {
	var debs []deb
	for _, v := range versions {
		debs = append(debs, deb{name: "kubelet", version: v + "-1.1"}, deb{name: "kubeadm", version: v + "-1.1"})
	}
	return debs
}

func installs(p upgrade.Plan) []string {
	var all []string
	for _, s := range p.Steps {
		if s.Kind == upgrade.StepInstallPackages {
			for _, c := range s.Packages {
				all = append(all, c.Name+" "+c.To)
			}
		}
	}
	return all
}

// Nobody runs apt-get update on the host: its own lists know the first repository only.
func TestAHostThatWasSwitchedToAnotherRepositoryCanBePlannedAgain(t *testing.T) {
	h := newHost(t)
	h.trust("kubernetes")
	r37 := newRepository(t, kubernetesDebs("1.37.2")...)
	base := minors(t, map[string]*repository{
		"v1.36": newRepository(t, kubernetesDebs("1.36.3")...), "v1.37": r37, "v1.38": newRepository(t, kubernetesDebs("1.38.0")...),
	})
	require.NoError(t, os.WriteFile(h.path("etc/apt/sources.list.d/k8s.list"),
		[]byte("deb [signed-by="+h.path("etc/apt/keyrings/kubernetes.asc")+"] "+base+"/v1.36/deb/ /\n"), 0o644))
	_, err := h.Runner.Run(t.Context(), cmd(h.apt("apt-get", "update")...))
	require.NoError(t, err)

	hop := h.plan("v1.36.3", "v1.37.2")
	assert.ElementsMatch(t, []string{"kubeadm 1.37.2-1.1", "kubelet 1.37.2-1.1"}, installs(hop))
	for _, s := range hop.Steps {
		if s.Kind == upgrade.StepSwitchSource {
			require.NoError(t, h.Switch(t.Context(), *s.Source))
		}
	}
	require.Contains(t, h.read("etc/apt/sources.list.d/k8s.list"), "/v1.37/deb/")
	assert.Equal(t, []string{"kubeadm", "kubelet"}, h.facts("v1.37.2").Packages.Sources[0].Provides)

	_, err = h.Candidates(t.Context(), upgrade.CandidateRequest{Packages: []string{"openssl"}})
	require.NoError(t, err, "a request for something else, which forgets the lists of this one")
	r37.publish(kubernetesDebs("1.37.2", "1.37.4")...)
	assert.ElementsMatch(t, []string{"kubeadm 1.37.4-1.1", "kubelet 1.37.4-1.1"}, installs(h.plan("v1.37.2", "v1.37.4")))

	next := h.plan("v1.37.4", "v1.38.0")
	assert.ElementsMatch(t, []string{"kubeadm 1.38.0-1.1", "kubelet 1.38.0-1.1"}, installs(next))
}

func TestWhatARepositoryOffersIsRememberedWithinBounds(t *testing.T) {
	h := newHost(t)
	require.NoError(t, os.MkdirAll(h.state("apt"), 0o755))
	require.NoError(t, os.WriteFile(string(h.offers()), []byte("damaged"), 0o600))
	assert.Empty(t, h.offers().Remembered(t.Context()))
	for i := range packagefile.MaxRemembered + 10 {
		uri := "https://mirror.example.com/" + strings.Repeat("x", i) + "/"
		require.NoError(t, h.offers().Remember([]upgrade.CandidateSource{{URI: uri}}, []upgrade.Candidate{{Name: "kubelet", Source: uri}}))
	}
	first := []upgrade.CandidateSource{{URI: "https://mirror.example.com/x"}}
	require.NoError(t, h.offers().Remember(first, nil), "nothing found this time, and it is too old to be known")
	assert.Len(t, h.offers().Remembered(t.Context()), packagefile.MaxRemembered)
	newest := "https://mirror.example.com/" + strings.Repeat("x", packagefile.MaxRemembered+9)
	assert.Equal(t, []string{"kubelet"}, h.offers().Remembered(t.Context())[newest])
}
