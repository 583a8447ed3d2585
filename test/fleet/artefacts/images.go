package artefacts

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refit-dev/refit/test/fleet/images"
)

// registry is the prefix of every image of a fleet. Hosts resolve the name to the fleet's own registry.
const registry = "registry.fleet.test/"

// imageRevision changes when the way images are made changes.
const imageRevision = "1"

// Image is an image of the fleet, as a docker-save archive.
type Image struct {
	Ref        string
	Tar        string
	Kubernetes string // the Kubernetes version it belongs to; empty: any
}

// imageBuild is one image to make. Its reference is empty while a release that names it is missing.
type imageBuild struct {
	name       string // image name without registry
	tag        string
	kubernetes string
	inputs     []string // what the recipe depends on besides name and tag
	eta        time.Duration
	content    func(ctx context.Context, w workplace) (imageContent, error)
}

func (b imageBuild) ref() string { return registry + b.name + ":" + b.tag }

func (b imageBuild) entry() string {
	if b.tag == "" {
		return ""
	}
	return fmt.Sprintf("images/%s-%s-%s", b.name, b.tag, recipe(append([]string{imageRevision, b.name, b.tag}, b.inputs...)...))
}

func (m *maker) imageItems() ([]item, error) {
	var items []item
	for _, b := range m.imageBuilds() {
		items = append(items, item{
			name: "image " + strings.TrimSuffix(b.name+":"+b.tag, ":"), entry: b.entry(), eta: max(b.eta, 5*time.Second),
			make: func(ctx context.Context, w workplace) error { return makeImage(ctx, w, b) },
		})
	}
	return items, nil
}

func makeImage(ctx context.Context, w workplace, b imageBuild) error {
	content, err := b.content(ctx, w)
	if err != nil {
		return err
	}
	if err := content.writeImage(w.dir, b.ref()); err != nil {
		return err
	}
	return removeAll(filepath.Join(w.dir, "bin"))
}

// imageBuilds lists every image once: releases share tags of pause and etcd.
func (m *maker) imageBuilds() []imageBuild {
	var all []imageBuild
	for _, v := range m.Kubernetes {
		all = append(all, m.controlPlaneImages(v)...)
		all = append(all, m.proxyImage(v), m.etcdImage(v), programImage("pause", m.cache.wantedTag(v, "pause"), "/pause"))
		if m.CoreDNS {
			all = append(all, dnsImage(m.cache.wantedTag(v, "coredns")))
		}
	}
	all = append(all, programImage("app", "v1", "/app"), programImage("app", "v2", "/app"))
	var once []imageBuild
	for _, b := range all {
		if !slices.ContainsFunc(once, func(o imageBuild) bool { return o.ref() == b.ref() }) {
			once = append(once, b)
		}
	}
	return once
}

func (m *maker) controlPlaneImages(version string) []imageBuild {
	var all []imageBuild
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		source := m.cache.path(kubernetesEntry(version), "bin", name)
		all = append(all, imageBuild{name: name, tag: version, kubernetes: version,
			content: func(context.Context, workplace) (imageContent, error) {
				target := "/usr/local/bin/" + name
				return imageContent{files: map[string]string{target: source}, entrypoint: []string{target}}, nil
			}})
	}
	return all
}

func (m *maker) etcdImage(kubernetes string) imageBuild {
	bin := m.cache.path(etcdEntry(m.cache.etcdVersion(kubernetes)), "bin")
	return imageBuild{name: "etcd", tag: m.cache.wantedTag(kubernetes, "etcd"),
		content: func(context.Context, workplace) (imageContent, error) {
			c := imageContent{files: map[string]string{}, entrypoint: []string{"/usr/local/bin/etcd"}}
			for name := range etcdCommands {
				c.files["/usr/local/bin/"+name] = filepath.Join(bin, name)
			}
			return c, nil
		}}
}

// proxyImage carries the tools kube-proxy writes rules with, taken from the hosts' root filesystem.
func (m *maker) proxyImage(version string) imageBuild {
	return imageBuild{name: "kube-proxy", tag: version, kubernetes: version, inputs: []string{rootfsEntry()},
		content: func(context.Context, workplace) (imageContent, error) {
			c, err := netfilterTools(m.cache.path(rootfsEntry(), "root"))
			if err != nil {
				return c, fmt.Errorf("collecting nft and iptables: %w", err)
			}
			c.files["/usr/local/bin/kube-proxy"] = m.cache.path(kubernetesEntry(version), "bin", "kube-proxy")
			c.entrypoint = []string{"/usr/local/bin/kube-proxy"}
			return c, nil
		}}
}

// programImage is built from a program whose source this repository holds.
func programImage(program, tag, target string) imageBuild {
	source, err := images.Sources.ReadFile(path.Join(program, "main.go"))
	return imageBuild{name: program, tag: tag, inputs: []string{string(source)},
		content: func(ctx context.Context, w workplace) (imageContent, error) {
			if err != nil {
				return imageContent{}, fmt.Errorf("reading source of %s: %w", program, err)
			}
			binary, err := buildProgram(ctx, w, program, tag, source)
			return imageContent{files: map[string]string{target: binary}, entrypoint: []string{target}}, err
		}}
}

func buildProgram(ctx context.Context, w workplace, program, version string, source []byte) (string, error) {
	src := filepath.Join(w.dir, "src")
	if err := os.MkdirAll(src, 0o755); err != nil {
		return "", fmt.Errorf("creating generated module: %w", err)
	}
	texts := map[string][]byte{"go.mod": []byte("module " + program + "\n\ngo 1.24\n"), "main.go": source}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := os.WriteFile(filepath.Join(src, name), texts[name], 0o644); err != nil {
			return "", fmt.Errorf("writing generated module: %w", err)
		}
	}
	binary := filepath.Join(w.dir, "bin", program)
	cmd := goCommand(src, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version, "-o", binary, ".")
	cmd.log = w.log
	if err := cmd.run(ctx); err != nil {
		return "", err
	}
	return binary, os.RemoveAll(src)
}
