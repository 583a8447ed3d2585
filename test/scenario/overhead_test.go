package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// overheadLimit is how much longer the host's part of an upgrade may take than the same change by hand.
const overheadLimit = 1.10

// applied is what one change of the runtime took.
type applied struct {
	// change is from the package to the restarted runtime, whole the operation from its
	// start to its end, with preflight, sandboxes, the kubelet's restart and verification.
	change, whole time.Duration
}

// TestAChangeOfTheRuntimeTakesTheHostAsLongAsByHand goes there and back by hand and
// through Refit, on one host, with packages that are on its disk in both cases.
func TestAChangeOfTheRuntimeTakesTheHostAsLongAsByHand(t *testing.T) {
	if os.Getenv("REFIT_IDLE") == "" {
		t.Skip("set REFIT_IDLE=10m (as root) to measure on a real fleet what Refit costs: make e2e")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	env := costFleet(ctx, t)
	worker := env.Fleet.Host("worker-1")
	require.NotNil(t, worker)

	var byHand, through []applied
	for range 3 {
		for _, version := range []string{To.Containerd, From.Containerd} {
			through = append(through, env.throughRefit(ctx, t, worker, version))
		}
	}
	_, err := worker.Exec(ctx, nil, "systemctl", "stop", "refit-agent.service")
	require.NoError(t, err)
	for _, version := range []string{To.Containerd, From.Containerd} {
		env.apt(ctx, t, worker, version, "--download-only", "--reinstall")
	}
	for range 3 {
		for _, version := range []string{To.Containerd, From.Containerd} {
			start := time.Now()
			env.apt(ctx, t, worker, version, "--no-download")
			_, err := worker.Exec(ctx, nil, "systemctl", "restart", "containerd.service")
			require.NoError(t, err)
			byHand = append(byHand, applied{change: time.Since(start)})
		}
	}
	hand, refit := medianOf(byHand), medianOf(through)
	ratio := refit.change.Seconds() / hand.change.Seconds()
	t.Logf("\n%s\nratio %.2f", overheadTable(byHand, through), ratio)
	assert.LessOrEqual(t, ratio, overheadLimit)
}

func (e *Env) apt(ctx context.Context, t *testing.T, h *testfleet.Host, version string, how ...string) {
	t.Helper()
	argv := append([]string{"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "--allow-downgrades",
		"-o", "Dpkg::Options::=--force-confold", "containerd.io=" + version + "-1"}, how...)
	_, err := h.Exec(ctx, nil, argv...)
	require.NoError(t, err)
}

// throughRefit edits the Machine, waits for it, and reads in the host's own journal what the change took.
func (e *Env) throughRefit(ctx context.Context, t *testing.T, h *testfleet.Host, version string) applied {
	t.Helper()
	m := &v1alpha1.Machine{}
	m.Name, m.Namespace = h.Name(), MachineNamespace
	patch := fmt.Appendf(nil, `{"spec":{"versions":{"containerRuntime":{"name":"containerd","version":%q}}}}`, version)
	require.NoError(t, e.Client.Patch(ctx, m, client.RawPatch(types.MergePatchType, patch)))
	require.NoError(t, e.Follow(ctx, func(machines []v1alpha1.Machine) (bool, error) {
		for i := range machines {
			if found := &machines[i]; found.Name == h.Name() {
				*m = *found
			}
		}
		v := m.Status.Versions
		return v != nil && v.ContainerRuntime != nil && strings.HasSuffix(v.ContainerRuntime.Text, version) && m.Status.Phase == v1alpha1.PhaseReady, nil
	}, func(Change) {}))
	require.NotNil(t, m.Status.LastOperation)
	return readApplied(ctx, t, h, m.Status.LastOperation.ID)
}

// readApplied takes the times from systemd's journal, not from what Refit reports.
func readApplied(ctx context.Context, t *testing.T, h *testfleet.Host, operation string) applied {
	t.Helper()
	out, err := h.Exec(ctx, nil, "journalctl", "--no-pager", "--output=json", "--unit=refit-op-"+operation+".service")
	require.NoError(t, err)
	type line struct {
		Message string `json:"MESSAGE"`
		Time    int64  `json:"__REALTIME_TIMESTAMP,string"`
	}
	type entry struct{ Msg, Step string }
	var a applied
	var began, install time.Time
	decoder := json.NewDecoder(bytes.NewReader(out))
	for decoder.More() {
		var l line
		require.NoError(t, decoder.Decode(&l))
		var e entry
		if json.Unmarshal([]byte(l.Message), &e) != nil {
			continue
		}
		at := time.UnixMicro(l.Time)
		switch {
		case e.Msg == "Starting operation":
			began = at
		case e.Msg == "Starting step" && e.Step == "InstallPackages":
			install = at
		case e.Msg == "Step done" && e.Step == "RestartUnit" && a.change == 0 && !install.IsZero(): // the runtime before the kubelet
			a.change = at.Sub(install)
		case e.Msg == "Operation ended":
			a.whole = at.Sub(began)
		}
	}
	require.Positive(t, a.change, string(out))
	require.Positive(t, a.whole, string(out))
	return a
}

func medianOf(all []applied) applied {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b applied) int { return int(a.change - b.change) })
	return sorted[len(sorted)/2]
}

func overheadTable(byHand, through []applied) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tMEDIAN\tLEAST\tMOST\tWHOLE OPERATION")
	for _, row := range []struct {
		name string
		all  []applied
	}{{"apt-get install && systemctl restart", byHand}, {"refit", through}} {
		least := slices.MinFunc(row.all, func(a, b applied) int { return int(a.change - b.change) })
		most := slices.MaxFunc(row.all, func(a, b applied) int { return int(a.change - b.change) })
		whole := "-"
		if m := medianOf(row.all); m.whole > 0 {
			whole = m.whole.Round(time.Millisecond).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", row.name, medianOf(row.all).change.Round(time.Millisecond),
			least.change.Round(time.Millisecond), most.change.Round(time.Millisecond), whole)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}
