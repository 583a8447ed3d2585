package artefacts

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var etcdCommands = map[string]string{
	"etcd":    "go.etcd.io/etcd/server/v3",
	"etcdctl": "go.etcd.io/etcd/etcdctl/v3",
	"etcdutl": "go.etcd.io/etcd/etcdutl/v3",
}

func etcdEntry(version string) string { return "etcd/" + version }

func (m *maker) etcdItems() ([]item, error) {
	var items []item
	for _, k := range m.Kubernetes {
		it := item{name: "etcd for Kubernetes " + k, eta: compiling(time.Minute)}
		if v := m.cache.etcdVersion(k); v != "" {
			it.name, it.entry = "etcd "+v, etcdEntry(v)
			it.make = func(ctx context.Context, w workplace) error { return makeEtcd(ctx, w, v) }
		}
		if !slices.ContainsFunc(items, func(o item) bool { return o.name == it.name }) {
			items = append(items, it)
		}
	}
	return items, nil
}

func makeEtcd(ctx context.Context, w workplace, version string) error {
	b := goBuild{
		module: "go.etcd.io/etcd/server/v3", version: version, commands: etcdCommands,
		requires: map[string]string{"go.etcd.io/etcd/etcdctl/v3": version, "go.etcd.io/etcd/etcdutl/v3": version},
		ldflags:  []string{"-s", "-w", "-X", "go.etcd.io/etcd/api/v3/version.GitSHA=refit-fleet"},
	}
	if err := b.run(ctx, w); err != nil {
		return err
	}
	want := strings.TrimPrefix(version, "v")
	for name, sub := range map[string]string{"etcd": "--version", "etcdctl": "version", "etcdutl": "version"} {
		if err := checkSays(ctx, []string{filepath.Join(w.dir, "bin", name), sub}, want); err != nil {
			return fmt.Errorf("checking what was built: %w", err)
		}
	}
	return nil
}

// etcdVersion is the etcd that kubeadm of that Kubernetes version asks for. The tag of its image ends in the revision of
// the image, which is no part of the version: 3.6.4-0 is etcd v3.6.4.
func (c cache) etcdVersion(kubernetes string) string {
	tag := c.wantedTag(kubernetes, "etcd")
	if tag == "" {
		return ""
	}
	if i := strings.LastIndex(tag, "-"); i >= 0 {
		tag = tag[:i]
	}
	return "v" + strings.TrimPrefix(tag, "v")
}
