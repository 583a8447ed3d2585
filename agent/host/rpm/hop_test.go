package rpm

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// B17: what the planner makes of a host's repository leads to the next minor's packages,
// checked as the host checks them now, and the switch of its file to the same place.
func TestAHopToTheNextMinorGoesByTheHostsOwnRepository(t *testing.T) {
	h := newHost(t)
	old := kubelet("1.36.3-150500.1.1")
	r := newRepository(t, kubelet("1.37.2-150500.1.1"))
	r.publish("v1.36", old)
	require.NoError(t, os.Remove(r.path("v1.37", "repodata/repomd.xml.asc")), "the host does not ask for signed metadata")
	h.installs(old)
	h.configure(r.uri("v1.36"), "exclude=kubelet\n")
	_, err := h.Candidates(t.Context(), upgrade.CandidateRequest{
		Sources: []upgrade.CandidateSource{{Name: "kubernetes", URI: r.uri("v1.36"), SignedBy: "kubernetes"}}, Packages: []string{"kubelet"},
	})
	require.NoError(t, err)

	facts := upgrade.Facts{}
	facts.Packages.Manager = "dnf"
	facts.Packages.Installed, err = h.Query(t.Context(), []string{"kubelet"})
	require.NoError(t, err)
	facts.Packages.Sources, err = h.Sources(t.Context(), []string{"kubelet"})
	require.NoError(t, err)
	target := v1alpha1.Target{}
	target.Kubelet = "v1.37.2"
	request, changes, err := upgrade.Sources(facts, target, v1alpha1.MachineSpec{})
	require.NoError(t, err)
	require.Len(t, changes, 1)
	assert.Equal(t, "/etc/yum.repos.d/kubernetes.repo", changes[0].File)
	require.Len(t, request.Sources, 1)
	assert.Equal(t, r.uri("v1.37"), request.Sources[0].URI)

	found, err := h.Candidates(t.Context(), request)
	require.NoError(t, err)
	c, err := upgrade.ResolvePackage(upgrade.OrderingOf("dnf"), found, "kubelet", "v1.37.2")
	require.NoError(t, err)
	findings, err := h.Stage(t.Context(), []upgrade.PackageChange{change(c, old.version)})
	require.NoError(t, err)
	assert.Empty(t, findings, "the old version comes from the repository that is configured now")
	require.NoError(t, h.Switch(t.Context(), changes[0]))
	assert.Contains(t, h.read(reposDir+"/kubernetes.repo"), "baseurl="+r.uri("v1.37")+"\n")
	require.NoError(t, h.Install(t.Context(), []upgrade.PackageChange{change(c, old.version)}, h.StageDir()))
	assert.Equal(t, []string{"kubelet 1.37.2-150500.1.1 installed"}, h.versions("kubelet"))
}
