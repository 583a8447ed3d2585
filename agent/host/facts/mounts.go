package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// roomy are the directories that a change writes to; those on the same file system are told once each.
var roomy = []string{"/", "/boot", "/usr", "/var", "/var/lib/refit", "/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet"}

func (g *gathering) mounts(context.Context) error {
	seen := map[uint64]bool{}
	var problems error
	for _, path := range roomy {
		var at unix.Stat_t
		if err := unix.Stat(g.path(path), &at); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			problems = errors.Join(problems, &os.PathError{Op: "stat", Path: path, Err: err})
			continue
		}
		if seen[at.Dev] {
			continue
		}
		seen[at.Dev] = true
		var space unix.Statfs_t
		if err := unix.Statfs(g.path(path), &space); err != nil {
			problems = errors.Join(problems, fmt.Errorf("looking at the free space of %s: %w", path, err))
			continue
		}
		block := uint64(space.Bsize)
		g.facts.Mounts = append(g.facts.Mounts, upgrade.MountFacts{Path: path, FreeBytes: space.Bavail * block, SizeBytes: space.Blocks * block})
	}
	return problems
}
