package upgrade

import "strings"

// roomFor* are what is left free beside what is written.
const (
	unpackFactor = 3         // of a package's size, where the index does not say how large it unpacks
	roomSpare    = 256 << 20 // for logs, images' layers and the next minutes
	roomBoot     = 192 << 20 // a kernel and its initramfs
)

// space refuses what would fill a file system in the middle of a transaction.
func space(p *planner) []Finding {
	need := map[string]uint64{}
	boot := false
	for _, c := range p.changes {
		if c.To == "" {
			continue
		}
		size := uint64(max(c.Size, 0))
		need[p.mountOf("/var/lib/refit").Path] += 2 * size // the file, and the kept one of before
		need[p.mountOf("/usr").Path] += p.unpacked(c, size)
		boot = boot || strings.HasPrefix(c.Name, "linux-image") || strings.HasPrefix(c.Name, "kernel")
	}
	if boot {
		need[p.mountOf("/boot").Path] += roomBoot
	}
	if size := p.snapshotSize(); size > 0 {
		need[p.mountOf("/var/lib/refit").Path] += size
	}
	var out []Finding
	for _, m := range p.in.Facts.Mounts {
		bytes, asked := need[m.Path]
		if m.Path != "/boot" {
			bytes += roomSpare
		}
		if asked && m.FreeBytes < bytes {
			out = append(out, failure(FindingNoSpace, "%s has %d MiB free and the plan needs %d MiB there: make room, then retry", m.Path, m.FreeBytes>>20, bytes>>20))
		}
	}
	return out
}

// snapshotSize is the room that a snapshot of etcd takes, 0 where the plan takes none: whichever member it comes from.
func (p *planner) snapshotSize() (size uint64) {
	if !p.snapshotsEtcd() || p.in.Facts.Etcd == nil {
		return 0
	}
	for _, m := range p.in.Facts.Etcd.Members {
		size = max(size, uint64(max(m.DBSize, 0)))
	}
	return size
}

// unpacked is the room that a package takes once installed.
func (p *planner) unpacked(c PackageChange, size uint64) uint64 {
	for _, candidate := range p.in.Candidates {
		if candidate.Name == c.Name && candidate.Version == c.To && candidate.InstalledSize > 0 {
			return uint64(candidate.InstalledSize)
		}
	}
	return unpackFactor * size
}

// mountOf is the mount that a path is on, as far as facts name it.
func (p *planner) mountOf(path string) MountFacts {
	var best MountFacts
	for _, m := range p.in.Facts.Mounts {
		under := m.Path == "/" || path == m.Path || strings.HasPrefix(path, m.Path+"/")
		if under && len(m.Path) > len(best.Path) {
			best = m
		}
	}
	return best
}
