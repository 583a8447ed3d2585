// Command refit-demo upgrades a small real fleet in place and leaves it up.
//
// One control plane and two workers at one Kubernetes minor, an application with a
// disruption budget on them, Refit installed, the machines adopted from what runs;
// then one edit of the pools, and the fleet walks to the next minor and the next
// major of containerd while the terminal shows it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/refit-dev/refit/test/fleet/testfleet"
	"github.com/refit-dev/refit/test/scenario"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "\nrefit-demo: %v\nThe fleet is still up for a look (bin/fleet list); make demo-down takes it away.\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	start := time.Now()
	d := &demo{start: start}
	for _, step := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"A fleet of one control plane and two workers", d.up},
		{"An application with two replicas and a PodDisruptionBudget", d.app},
		{"Refit: coordinator in the cluster, agent and executor on each host", d.install},
		{"The machines, adopted at the versions that run", d.adopt},
		{"One edit of the pools: " + scenario.To.Kubernetes + " and containerd " + scenario.To.Containerd, d.upgrade},
		{"Afterwards", d.summary},
	} {
		fmt.Printf("\n== %s\n", step.title)
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

type demo struct {
	start   time.Time
	env     *scenario.Env
	sampler *scenario.Sampler
	gone    *scenario.Deletions
	took    time.Duration
}

func (d *demo) up(ctx context.Context) error {
	f, err := testfleet.Up(ctx, scenario.Options("demo", 2, os.Stdout))
	if err != nil {
		return err
	}
	if d.env, err = scenario.Open(f, os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	d.play()
	return d.env.Fresh(ctx)
}

// play says how to reach the fleet.
func (d *demo) play() {
	fmt.Printf(`The fleet is up. In another terminal, from this directory:
  export KUBECONFIG=$(bin/fleet kubeconfig --name demo) PATH=$PWD/bin:%s:$PATH
  kubectl get machines -n %s
  kubectl refit status
  bin/fleet exec --name demo worker-1 -- journalctl -u refit-agent
`, filepath.Dir(d.env.Fleet.Kubectl()), scenario.MachineNamespace)
}

func (d *demo) app(ctx context.Context) error {
	return d.env.DeployApp(ctx, scenario.AppImage)
}

func (d *demo) install(ctx context.Context) error { return d.env.Install(ctx) }

func (d *demo) adopt(ctx context.Context) error {
	if err := d.env.Adopt(ctx); err != nil {
		return err
	}
	return d.show(ctx)
}

func (d *demo) show(ctx context.Context) error {
	out, err := d.env.Kubectl(ctx, "get", "machines", "-n", scenario.MachineNamespace)
	if err != nil {
		return err
	}
	fmt.Printf("\n$ kubectl get machines -n %s\n%s", scenario.MachineNamespace, out)
	return nil
}

func (d *demo) upgrade(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Minute)
	defer cancel()
	d.sampler = d.env.StartSampler(ctx)
	var err error
	if d.gone, err = d.env.StartDeletions(ctx, scenario.AppNamespace); err != nil {
		return err
	}
	begin := time.Now()
	if err := d.env.Edit(ctx, scenario.To); err != nil {
		return err
	}
	shown := map[string]bool{}
	err = d.env.Follow(ctx, scenario.AllAt(scenario.To), func(c scenario.Change) {
		fmt.Printf("  %6s  %-10s %s\n", time.Since(begin).Round(time.Second), c.Machine.Name, scenario.Line(&c.Machine))
		if c.Machine.Status.Phase == "Applying" && !shown[c.Machine.Name] {
			shown[c.Machine.Name] = true
			_ = d.show(ctx) // only for people; the API server may be away now
		}
	})
	d.took = time.Since(begin)
	return err
}

func (d *demo) summary(ctx context.Context) error {
	if err := d.show(ctx); err != nil {
		return err
	}
	machines, err := d.env.Machines(ctx)
	if err != nil {
		return err
	}
	fmt.Println()
	scenario.PrintTimings(os.Stdout, machines)
	samples := d.sampler.Stop()
	low := scenario.Lowest(samples)
	evicted, other := 0, 0
	for _, g := range d.gone.Stop() {
		if g.Evicted {
			evicted++
		} else {
			other++
		}
	}
	fmt.Printf(`
The fleet went from %s to %s and from containerd %s to %s in place in %s.
The application was looked at %d times, every %s: never fewer than %d of %d pods ready (its budget asks for %d).
Pods evicted: %d; deleted otherwise: %d. Whole demo: %s.

`, scenario.From.Kubernetes, scenario.To.Kubernetes, scenario.From.Containerd, scenario.To.Containerd, d.took.Round(time.Second),
		len(samples), scenario.SampleInterval, low.Ready, scenario.AppReplicas, scenario.AppMinAvailable,
		evicted, other, time.Since(d.start).Round(time.Second))
	d.play()
	fmt.Println("make demo-down takes it away.")
	return nil
}
