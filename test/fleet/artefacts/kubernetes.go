package artefacts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// kubernetesCommands are the binaries a release consists of.
var kubernetesCommands = []string{
	"kubeadm", "kubelet", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
}

// imagesFile records, next to the binaries, which images this kubeadm asks for.
const imagesFile = "images.txt"

func kubernetesEntry(version string) string { return "kubernetes/" + version }

func (m *maker) kubernetesItems() ([]item, error) {
	var items []item
	for _, v := range m.Kubernetes {
		items = append(items, item{
			name: "Kubernetes " + v, entry: kubernetesEntry(v), eta: compiling(6 * time.Minute),
			make: func(ctx context.Context, w workplace) error { return m.makeKubernetes(ctx, w, v) },
		})
	}
	return items, nil
}

func (m *maker) makeKubernetes(ctx context.Context, w workplace, version string) error {
	if err := m.fetchOrBuild(ctx, w, version); err != nil {
		return err
	}
	if err := checkKubernetes(ctx, w.dir, version); err != nil {
		return err
	}
	images, err := command{argv: []string{
		filepath.Join(w.dir, "bin", "kubeadm"), "config", "images", "list",
		"--kubernetes-version", version, "--image-repository", strings.TrimSuffix(registry, "/"),
	}}.output(ctx)
	if err != nil {
		return fmt.Errorf("asking kubeadm for its images: %w", err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, imagesFile), images, 0o644); err != nil {
		return fmt.Errorf("recording images: %w", err)
	}
	return nil
}

// fetchOrBuild falls back to building only when the mirror cannot be reached or lacks the release: a mirror that serves
// wrong bytes is an error.
func (m *maker) fetchOrBuild(ctx context.Context, w workplace, version string) error {
	if m.Mirror != "" {
		err := mirror{base: m.Mirror}.fetchRelease(ctx, w, version)
		if err == nil || !isUnavailable(err) {
			return err
		}
		w.note("building instead: " + err.Error())
	}
	return kubernetesBuild(version).run(ctx, w)
}

func kubernetesBuild(version string) goBuild {
	b := goBuild{module: "k8s.io/kubernetes", version: version, commands: map[string]string{}, ldflags: []string{"-s", "-w"}}
	minor := strings.TrimPrefix(minorOf(version), "v1.")
	for _, set := range []string{
		"gitVersion=" + version, "gitMajor=1", "gitMinor=" + minor, "gitCommit=refit-fleet", "gitTreeState=clean",
		"buildDate=1970-01-01T00:00:00Z",
	} {
		b.ldflags = append(b.ldflags, "-X", "k8s.io/component-base/version."+set)
	}
	for _, name := range kubernetesCommands {
		b.commands[name] = b.module + "/cmd/" + name
	}
	return b
}

// checkKubernetes runs every binary: what counts is what it says it is.
func checkKubernetes(ctx context.Context, dir, version string) error {
	for _, name := range kubernetesCommands {
		argv := []string{filepath.Join(dir, "bin", name), "--version"}
		switch name {
		case "kubeadm":
			argv[1] = "version"
		case "kubectl":
			argv = append(argv[:1], "version", "--client")
		}
		if err := checkSays(ctx, argv, version); err != nil {
			return err
		}
	}
	return nil
}

// checkSays fails unless the output of the command contains want as a word.
func checkSays(ctx context.Context, argv []string, want string) error {
	out, err := command{argv: argv}.output(ctx)
	if err != nil {
		return err
	}
	words := bytes.FieldsFunc(out, func(r rune) bool { return strings.ContainsRune(" \t\n\",()", r) })
	for _, word := range words {
		if strings.TrimPrefix(string(word), `GitVersion:`) == want {
			return nil
		}
	}
	return fmt.Errorf("%s says it is %q, wanted %s", argv[0], bytes.TrimSpace(out), want)
}

// wantedTag is the tag kubeadm of that version asks for, of the image with that name. Empty while the release is not
// in the cache.
func (c cache) wantedTag(kubernetes, image string) string {
	list, err := os.ReadFile(c.path(kubernetesEntry(kubernetes), imagesFile))
	if err != nil {
		return ""
	}
	for _, ref := range strings.Fields(string(list)) {
		if tag, found := strings.CutPrefix(ref, registry+image+":"); found {
			return tag
		}
	}
	return ""
}
