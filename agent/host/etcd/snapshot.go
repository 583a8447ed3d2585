package etcd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	// keepSnapshots are kept, the newest; each may be as large as etcd's database.
	keepSnapshots = 3
	// roomSpare stays free beside a snapshot: etcd itself may write to the same file system.
	roomSpare  = 256 << 20
	snapshotOf = "snapshot-" // name of an operation, and the ending
	ending     = ".db"
	partial    = ".part"
)

// Snapshot takes a snapshot for an operation, unless there is one that is whole: a step that is
// run again takes no second one. It is read back and verified before it counts.
func (e *Etcd) Snapshot(ctx context.Context, operation string) (upgrade.EtcdSnapshot, error) {
	path := filepath.Join(Dir, snapshotOf+filepath.Base(operation)+ending)
	if taken, err := e.Verify(path); err == nil {
		return taken, nil
	}
	a, err := e.Access(ctx)
	if err != nil {
		return upgrade.EtcdSnapshot{}, err
	}
	if a == nil {
		return upgrade.EtcdSnapshot{}, ErrNone
	}
	if err := files.PrivateDir(e.path(Dir)); err != nil {
		return upgrade.EtcdSnapshot{}, err //nolint:wrapcheck // says what it was doing
	}
	if err := e.sweep(keepSnapshots - 1); err != nil { // before: the room of an old one may be what the new one needs
		return upgrade.EtcdSnapshot{}, err
	}
	if err := e.take(ctx, a, e.path(path)); err != nil {
		return upgrade.EtcdSnapshot{}, err
	}
	return e.Verify(path)
}

// take fetches a snapshot from the first endpoint that answers.
func (e *Etcd) take(ctx context.Context, a *Access, path string) error {
	var problems error
	for _, endpoint := range a.Endpoints {
		err := e.takeFrom(ctx, a, endpoint, path)
		var full *upgrade.Blocked
		if err == nil || errors.As(err, &full) {
			return err
		}
		problems = errors.Join(problems, err)
	}
	return problems
}

func (e *Etcd) takeFrom(ctx context.Context, a *Access, endpoint, path string) (err error) {
	client, err := e.connect(a, endpoint)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is written through it
	status, err := e.status(ctx, client, endpoint)
	if err != nil {
		return err
	}
	if err := room(filepath.Dir(path), status.DbSize); err != nil {
		return err
	}
	if err := fetch(ctx, client, path+partial); err != nil {
		return errors.Join(fmt.Errorf("taking a snapshot of etcd at %s: %w", endpoint, err), files.Remove(path+partial))
	}
	if err := os.Rename(path+partial, path); err != nil {
		return fmt.Errorf("keeping the snapshot of etcd: %w", err)
	}
	return files.SyncDir(filepath.Dir(path)) //nolint:wrapcheck // says what it was doing
}

func fetch(ctx context.Context, client *clientv3.Client, path string) (err error) {
	answer, err := client.SnapshotWithVersion(ctx)
	if err != nil {
		return fmt.Errorf("asking for it: %w", err)
	}
	defer answer.Snapshot.Close() //nolint:errcheck // only read from
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("making its file: %w", err)
	}
	_, err = io.Copy(out, answer.Snapshot)
	return errors.Join(err, out.Sync(), out.Close())
}

// room refuses what would fill the file system that etcd itself may be on.
func room(dir string, size int64) error {
	var space unix.Statfs_t
	if err := unix.Statfs(dir, &space); err != nil {
		return fmt.Errorf("looking at the free space of %s: %w", dir, err)
	}
	free, need := space.Bavail*uint64(space.Bsize), uint64(max(size, 0))+roomSpare
	if free < need {
		return &upgrade.Blocked{Reason: upgrade.FindingNoSpace, Message: fmt.Sprintf("%s has %d MiB free and a snapshot of etcd needs %d MiB there: make room, then retry", dir, free>>20, need>>20)}
	}
	return nil
}

// Verify reads a snapshot back: the digest at its end is that of all before it, the database
// opens and holds together, and its newest revision is told.
func (e *Etcd) Verify(path string) (upgrade.EtcdSnapshot, error) {
	out := upgrade.EtcdSnapshot{Path: path}
	at, err := os.Stat(e.path(path))
	if err != nil {
		return out, fmt.Errorf("looking at the snapshot %s: %w", path, err)
	}
	out.Size, out.Time = at.Size(), at.ModTime().UTC()
	if out.SHA256, err = digest(e.path(path), at.Size()); err != nil {
		return out, fmt.Errorf("verifying the snapshot %s: %w", path, err)
	}
	if out.Revision, err = revision(e.path(path)); err != nil {
		return out, fmt.Errorf("verifying the snapshot %s: %w", path, err)
	}
	return out, nil
}

// digest is that of the database, which must be the one at the end of the file.
func digest(path string, size int64) (string, error) {
	if size%512 != sha256.Size {
		return "", fmt.Errorf("it is %d bytes long and has no digest at its end: it was cut short", size)
	}
	in, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("opening it: %w", err)
	}
	defer in.Close() //nolint:errcheck // only read from
	sum := sha256.New()
	if _, err := io.CopyN(sum, in, size-sha256.Size); err != nil {
		return "", fmt.Errorf("reading it: %w", err)
	}
	want, err := io.ReadAll(in)
	if err != nil {
		return "", fmt.Errorf("reading its digest: %w", err)
	}
	if have := sum.Sum(nil); !bytes.Equal(have, want) {
		return "", fmt.Errorf("its content has the digest %x and its end says %x: it is damaged", have, want)
	}
	return hex.EncodeToString(want), nil
}

// sweep keeps the newest snapshots and removes what a crash left half written.
func (e *Etcd) sweep(keep int) error {
	entries, err := os.ReadDir(e.path(Dir))
	if err != nil {
		return fmt.Errorf("listing the snapshots of etcd: %w", err)
	}
	var kept []fs.FileInfo
	var problems error
	for _, entry := range entries {
		info, err := entry.Info()
		switch {
		case err != nil || !strings.HasPrefix(entry.Name(), snapshotOf):
		case strings.HasSuffix(entry.Name(), partial):
			problems = errors.Join(problems, files.Remove(filepath.Join(e.path(Dir), entry.Name())))
		case strings.HasSuffix(entry.Name(), ending):
			kept = append(kept, info)
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, old := range kept[min(keep, len(kept)):] {
		problems = errors.Join(problems, files.Remove(filepath.Join(e.path(Dir), old.Name())))
	}
	return problems
}
