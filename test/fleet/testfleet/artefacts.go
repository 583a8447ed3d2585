package testfleet

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/refit-dev/refit/test/fleet/artefacts"
)

// Artefacts makes everything that fleets with these options need and returns the
// directory with the newest Kubernetes programs.
func Artefacts(ctx context.Context, o Options, out io.Writer) (string, error) {
	say := newProgress(out)
	versions := union([]string{o.Kubernetes}, o.AlsoKubernetes)
	set, err := ensureArtefacts(ctx, artefacts.Config{
		Kubernetes: versions, Containerd: union([]string{o.Containerd}, o.AlsoContainerd),
		CoreDNS: o.CoreDNS,
		Mirror:  os.Getenv("REFIT_FLEET_MIRROR"), Progress: say.artefact,
	}, say)
	if err != nil {
		return "", err
	}
	return filepath.Dir(set.KubernetesBin(versions[len(versions)-1], "kube-apiserver")), nil
}

// ensureArtefacts says how long it will take before it starts.
func ensureArtefacts(ctx context.Context, config artefacts.Config, say *progress) (*artefacts.Set, error) {
	if missing, eta := artefacts.Estimate(config); len(missing) > 0 {
		say.say("making %d artefacts that are not in the cache yet, about %s on two idle cores, kept for later runs: %s",
			len(missing), eta.Round(time.Second), strings.Join(missing, ", "))
	}
	return artefacts.Ensure(ctx, config)
}
