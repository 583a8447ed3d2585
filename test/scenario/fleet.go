package scenario

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/checkout"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// What the fleet starts at and goes to: two adjacent minors of Kubernetes and two majors of containerd.
var (
	From = Wish{Kubernetes: "v1.36.3", Containerd: "1.7.35"}
	To   = Wish{Kubernetes: "v1.37.2", Containerd: "2.4.2"}
)

// AppImage is the application's image in the fleet's registry.
const AppImage = "registry.fleet.test/app:v1"

// Options are a fleet at From that can go to To. The fleet program that `make fleet` has built is used where it is there.
func Options(name string, workers int, progress io.Writer) testfleet.Options {
	if root, err := checkout.Root(); err == nil {
		if program := filepath.Join(root, "bin", "fleet"); isFile(program) {
			testfleet.Program = program
		}
	}
	return testfleet.Options{
		Name: name, ControlPlanes: 1, Workers: workers,
		Kubernetes: From.Kubernetes, AlsoKubernetes: []string{To.Kubernetes},
		Containerd: "v" + From.Containerd, AlsoContainerd: []string{"v" + To.Containerd},
		CoreDNS:  true,
		Progress: progress,
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Adopt makes Machines and MachineDeployments from what runs, and waits until every machine has reported that it is at From.
func (e *Env) Adopt(ctx context.Context) error { return e.AdoptAt(ctx, From) }

// AdoptAt is Adopt for a fleet that is elsewhere.
func (e *Env) AdoptAt(ctx context.Context, at Wish) error {
	if _, err := e.Refit(ctx, "adopt", "--apply"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return e.Follow(ctx, AllAt(at), func(Change) {})
}

// Line is one machine's state in a line for people.
func Line(m *v1alpha1.Machine) string {
	s := fmt.Sprintf("%-11s", m.Status.Phase)
	if op := m.Status.LastOperation; op != nil && op.State == v1alpha1.OperationProcessing {
		return s + fmt.Sprintf(" step %d/%d %s", op.StepsDone+1, op.StepsTotal, op.Step)
	}
	if why := WhyNot(m); why != "" {
		return s + " " + why
	}
	return s
}
