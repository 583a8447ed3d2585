package daemon

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/refit-dev/refit/test/fleet/state"
)

// RegistryHost is how hosts name the registry.
const RegistryHost = "registry.fleet.test"

// pushImages uploads what the registry lacks. Layers are kept on disk across daemons, manifests are not. A tag moves when
// the image behind it was made anew, which its file tells: cached artefacts never change.
func (d *Daemon) pushImages(ctx context.Context, address string, images []state.Image) error {
	for _, im := range images {
		if d.pushed[im.Ref] == im.Tar {
			continue
		}
		repository, ok := strings.CutPrefix(im.Ref, RegistryHost+"/")
		if !ok {
			return fmt.Errorf("pushing image %s: its name does not begin with %s/", im.Ref, RegistryHost)
		}
		if err := pushImage(ctx, path.Join(address, repository), im.Tar); err != nil {
			return fmt.Errorf("pushing image %s: %w", im.Ref, err)
		}
		d.pushed[im.Ref] = im.Tar
	}
	return nil
}

func pushImage(ctx context.Context, target, tar string) error {
	ref, err := name.ParseReference(target, name.Insecure)
	if err != nil {
		return err
	}
	img, err := tarball.ImageFromPath(tar, nil)
	if err != nil {
		return fmt.Errorf("reading %s: %w", tar, err)
	}
	return remote.Write(ref, img, remote.WithContext(ctx), remote.WithTransport(direct()))
}

// direct never goes through a proxy of the environment: the registry is on this machine.
func direct() http.RoundTripper {
	return &http.Transport{Proxy: nil, ResponseHeaderTimeout: time.Minute}
}
