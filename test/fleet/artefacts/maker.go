package artefacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// item is one entry of the cache and the way to make it.
type item struct {
	name  string // for people
	entry string // its path in the cache; empty while that depends on an entry that is missing
	eta   time.Duration
	make  func(ctx context.Context, w workplace) error
}

// workplace is where an item is made.
type workplace struct {
	dir  string       // becomes the entry once complete
	log  string       // file that takes the output of commands
	note func(string) // tells the person who waits
}

// stages are in order: what one makes, later ones read, also to name their own entries.
var stages = []func(*maker) ([]item, error){
	(*maker).kubernetesItems,
	(*maker).etcdItems,
	(*maker).containerdItems,
	(*maker).rootfsItems,
	(*maker).keyringItems,
	(*maker).debItems,
	(*maker).aptItems,
	(*maker).imageItems,
}

type maker struct {
	Config
	cache cache
}

func newMaker(c Config) (*maker, error) {
	for _, v := range append(append([]string{}, c.Kubernetes...), c.Containerd...) {
		if !exactVersion.MatchString(v) {
			return nil, fmt.Errorf("version %q of an artefact is not exact: write it like v1.37.2", v)
		}
	}
	if len(c.Kubernetes) == 0 {
		return nil, errors.New("no Kubernetes version to make artefacts for: name at least one, like v1.37.2")
	}
	dir, err := cacheDir(c.CacheDir, os.Getenv)
	if err != nil {
		return nil, err
	}
	if c.Progress == nil {
		c.Progress = func(Event) {}
	}
	return &maker{Config: c, cache: cache{dir: dir}}, nil
}

// missing lists what is not cached. A stage that cannot name its items yet lists them without an entry.
func (m *maker) missing() []item {
	var lacking []item
	for _, stage := range stages {
		items, err := stage(m)
		if err != nil {
			continue
		}
		for _, it := range items {
			if it.entry == "" || !m.cache.has(it.entry) {
				lacking = append(lacking, it)
			}
		}
	}
	return lacking
}

func (m *maker) ensure(ctx context.Context, it item) error {
	start := time.Now()
	tell := func(phase, note string) {
		done := phase == PhaseMade || phase == PhaseCached || phase == PhaseFailed
		m.Progress(Event{Item: it.name, Phase: phase, Done: done, Elapsed: time.Since(start), Note: note})
	}
	if m.cache.has(it.entry) {
		tell(PhaseCached, "")
		return nil
	}
	tell(PhaseMaking, "about "+it.eta.Round(time.Second).String())
	err := m.cache.fill(ctx, it.entry, func() { tell(PhaseWaiting, "another process makes it") }, func(dir, log string) error {
		return it.make(ctx, workplace{dir: dir, log: log, note: func(s string) { tell(PhaseMaking, s) }})
	})
	if err != nil {
		tell(PhaseFailed, err.Error())
		return err
	}
	tell(PhaseMade, "")
	return nil
}

// preflight refuses work that is bound to fail, before the long part of it starts.
func (m *maker) preflight() error {
	lacking := m.missing()
	if len(lacking) == 0 {
		return nil
	}
	tools := map[string]string{"mmdebstrap": "mmdebstrap", "apt-ftparchive": "apt-utils"}
	var packages []string
	for tool, pkg := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			packages = append(packages, pkg)
		}
	}
	if len(packages) > 0 {
		return fmt.Errorf("making fleet artefacts needs tools that are not installed: run `apt-get install -y %s`",
			strings.Join(packages, " "))
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("making fleet artefacts needs the go command: install Go and put it on PATH: %w", err)
	}
	return m.needRoot(lacking)
}

func (m *maker) needRoot(lacking []item) error {
	for _, it := range lacking {
		if strings.HasPrefix(it.entry, "rootfs/") && os.Geteuid() != 0 {
			return errors.New("making the root filesystem of the hosts needs root: run this as root once, later runs find it in the cache")
		}
	}
	return nil
}

// compiling scales the time a build takes on two idle cores to this machine.
func compiling(onTwoCores time.Duration) time.Duration {
	return onTwoCores * 2 / time.Duration(max(runtime.NumCPU(), 2))
}
