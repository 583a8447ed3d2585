package kubeadm

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/controlplane"
	"github.com/refit-dev/refit/agent/host/runtime"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// validImage keeps what a program prints from being anything else than an image name.
var validImage = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*:[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Images are the images that an upgrade will run on this host, from the repository that
// it runs them from now. Without a required one the upgrade cannot come about; a useful
// one only spares its pull later, or belongs to an addon that the host cannot see to be
// in use. A kubeadm that is not installed yet is asked: program. It fetches nothing.
func (k *Kubeadm) Images(ctx context.Context, program string, u upgrade.KubeadmUpgrade) (required, useful []string, err error) {
	if err := check(u); err != nil {
		return nil, nil, err
	}
	now, err := k.imagesNow(ctx, u)
	if err != nil {
		return nil, nil, err
	}
	repository := now.repository()
	if repository == "" {
		return nil, nil, nil // neither control plane nor kube-proxy: nothing of kubeadm's runs here
	}
	argv := []string{program, "config", "images", "list", "--kubernetes-version=" + u.Version, "--image-repository=" + repository}
	result, err := k.Runner.Run(ctx, command.Command{Argv: argv, Timeout: time.Minute})
	if err != nil {
		return nil, nil, fmt.Errorf("asking kubeadm %s for its images: %w", u.Version, err)
	}
	for image := range strings.FieldsSeq(result.Stdout) {
		if !validImage.MatchString(image) {
			return nil, nil, fmt.Errorf("asking kubeadm %s for its images: %q is no image with a tag", u.Version, image)
		}
		if blocked := now.skipsEtcd(image); blocked != nil {
			return nil, nil, blocked
		}
		switch image, use := now.use(image); use {
		case mustHave:
			required = append(required, image)
		case niceToHave:
			useful = append(useful, image)
		case notHere:
		}
	}
	return required, useful, nil
}

// running is what the host runs of kubeadm's images now.
type running struct {
	controlPlane bool
	manifests    map[string]string // component to image
	proxy        string            // image of the running kube-proxy, "" without one
}

func (k *Kubeadm) imagesNow(ctx context.Context, u upgrade.KubeadmUpgrade) (running, error) {
	now := running{controlPlane: u.ControlPlane}
	var err error
	if u.ControlPlane {
		if now.manifests, err = controlplane.New(k.Root).Images(); err != nil {
			return now, fmt.Errorf("looking for the images of the control plane: %w", err)
		}
	}
	if k.Proxy != nil {
		if now.proxy, err = k.Proxy(ctx); err != nil {
			return now, fmt.Errorf("looking for the image of kube-proxy: %w", err)
		}
	}
	return now, nil
}

func (r running) repository() string {
	if r.controlPlane {
		return repositoryOf(r.manifests["kube-apiserver"])
	}
	return repositoryOf(r.proxy)
}

// skipsEtcd refuses an image of etcd that leaves out a minor between it and the one in the manifest.
func (r running) skipsEtcd(image string) *upgrade.Blocked {
	if name, _, _ := strings.Cut(path.Base(image), ":"); name != "etcd" || r.manifests["etcd"] == "" {
		return nil
	}
	return upgrade.EtcdMinor(runtime.Tag(r.manifests["etcd"]), runtime.Tag(image))
}

type use int

const (
	notHere use = iota
	niceToHave
	mustHave
)

// use says what an image of kubeadm's list is for this host, and under which name.
func (r running) use(image string) (string, use) {
	name, _, _ := strings.Cut(path.Base(image), ":")
	switch name {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
		return image, when(r.controlPlane, mustHave)
	case "etcd": // may come from a repository of its own; an external one does not run here
		own := repositoryOf(r.manifests["etcd"])
		return own + "/" + path.Base(image), when(own != "", mustHave)
	case "kube-proxy":
		if r.controlPlane { // kubeadm pulls it before it begins
			return image, when(r.proxy != "", mustHave)
		}
		return image, niceToHave
	case "pause":
		return image, niceToHave
	}
	return image, when(r.controlPlane, niceToHave) // CoreDNS: on which host it runs is the scheduler's choice
}

func when(condition bool, then use) use {
	if condition {
		return then
	}
	return notHere
}

// repositoryOf is an image's name without its last part; "" when there is nothing before it.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if dir := path.Dir(image); dir != "." {
		return dir
	}
	return ""
}
