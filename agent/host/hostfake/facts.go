package hostfake

import (
	"context"
	"io/fs"
	"sort"
	"strings"
	"time"

	"github.com/refit-dev/refit/pkg/upgrade"
)

type facts struct{ h *Host }

func (f facts) Facts(context.Context, []string) (out upgrade.Facts, err error) {
	err = f.h.call("facts", func() error { out = f.read(); return nil })
	return out, err
}

func (f facts) read() upgrade.Facts {
	h := f.h
	out := upgrade.Facts{APIVersion: upgrade.FactsAPIVersion, Kind: "Facts", Host: upgrade.HostFacts{BootID: h.BootID}}
	if h.Active["kubelet.service"] {
		out.Kubelet = &upgrade.ComponentFacts{Running: h.State.Kubelet, Installed: "v" + h.onDisk("kubelet"), Active: true}
		f.configuration(&out)
	}
	if h.Active["containerd.service"] {
		out.Runtime = &upgrade.RuntimeFacts{Name: "containerd", Running: h.State.Runtime, Ready: true, CgroupDriver: h.CgroupDrivers[h.State.Runtime]}
	}
	if len(h.Pods) > 0 {
		out.Control = &upgrade.ControlFacts{
			APIServer: h.Pods["kube-apiserver"], ControllerManager: h.Pods["kube-controller-manager"],
			Scheduler: h.Pods["kube-scheduler"], Etcd: h.Pods["etcd"],
		}
	}
	if pkg, packaged := h.Packages[etcdPackage]; packaged {
		out.EtcdUnit = &upgrade.EtcdUnitFacts{Unit: upgrade.UnitEtcd, Active: h.Active[upgrade.UnitEtcd], Installed: upstream(pkg.Version)}
	}
	if h.Etcd != nil {
		seen := f.h.members()
		out.Etcd = &seen
	}
	if h.Locked > 0 {
		h.Locked--
		out.Packages.Lock = &upgrade.LockFacts{PID: 2448, Command: "unattended-upgr", Path: "/var/lib/dpkg/lock-frontend"}
	}
	for file, uri := range h.Sources {
		out.Packages.Sources = append(out.Packages.Sources, upgrade.SourceFacts{File: file, URI: uri})
	}
	for name, pkg := range h.Packages {
		out.Packages.Installed = append(out.Packages.Installed, upgrade.InstalledPackage{Name: name, Version: pkg.Version, State: pkg.State})
		if pkg.Held {
			out.Packages.Holds = append(out.Packages.Holds, name)
		}
		if pkg.State != installed {
			out.Packages.Broken = append(out.Packages.Broken, name)
		}
	}
	for _, file := range certificates {
		if end, err := time.Parse(time.RFC3339, h.Files[file].Content); err == nil {
			out.Certs = append(out.Certs, upgrade.CertFacts{Path: file, NotAfter: end, ManagedBy: upgrade.ManagedByKubeadm})
		}
	}
	sort.Strings(out.Packages.Holds)
	sort.Strings(out.Packages.Broken)
	return out
}

type policy struct{ h *Host }

func (p policy) Read() *upgrade.PolicyFacts { return p.h.Policy }

type files struct{ h *Host }

func (f files) Read(path string) (content []byte, mode fs.FileMode, err error) {
	err = f.h.call("read "+path, func() error {
		file, ok := f.h.Files[path]
		if !ok {
			return fs.ErrNotExist
		}
		content, mode = []byte(file.Content), file.Mode
		return nil
	})
	return content, mode, err
}

func (f files) Write(path string, content []byte, mode fs.FileMode) error {
	return f.h.call("write "+path, func() error {
		f.h.Files[path] = File{string(content), mode}
		return nil
	})
}

func (f files) Remove(path string) error {
	return f.h.call("remove "+path, func() error { delete(f.h.Files, path); return nil })
}

func (f files) Sync(path string) error { return f.h.call("sync "+path, func() error { return nil }) }

// Digest knows staged files by their name, name_version.deb, and those that a test left in Files.
func (f files) Digest(path string) (digest string, err error) {
	err = f.h.call("digest "+path, func() error {
		base := path[strings.LastIndex(path, "/")+1:]
		if file, ok := f.h.Files[path]; ok {
			digest = file.Content
			return nil
		}
		name, rest, ok := strings.Cut(strings.TrimSuffix(base, ".deb"), "_")
		if !ok {
			return fs.ErrNotExist
		}
		digest = Digest(name, rest)
		return nil
	})
	return digest, err
}
