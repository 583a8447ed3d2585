package runtime

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// pullTimeout bounds one image.
const pullTimeout = 15 * time.Minute

// Pull makes an image present; one that is there already is not asked for again.
func (r *Runtime) Pull(ctx context.Context, image string) error {
	present, err := r.image(ctx, image)
	if err != nil || present != nil {
		return err
	}
	conn, err := r.dial()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	client := runtimev1.NewImageServiceClient(conn)
	if _, err := client.PullImage(ctx, &runtimev1.PullImageRequest{Image: &runtimev1.ImageSpec{Image: image}}); err != nil {
		return pullFailure(image, err)
	}
	return nil
}

// pullFailure tells an image that does not exist from a registry that is away. What a
// registry answers to those it does not know may mean either, so it may pass.
func pullFailure(image string, err error) error {
	text := status.Convert(err).Message()
	switch {
	case status.Code(err) == codes.NotFound, strings.Contains(text, "manifest unknown"):
		return &upgrade.Blocked{
			Reason: "ImageNotFound", Terminal: true,
			Message: fmt.Sprintf("image %s does not exist in its registry: %s; put it there, or let the manifests on this host name the right repository", image, text),
		}
	case status.Code(err) == codes.Canceled, status.Code(err) == codes.DeadlineExceeded:
		return fmt.Errorf("pulling image %s: %w", image, err)
	}
	return &upgrade.Blocked{Reason: "ImagePullFailed", Message: fmt.Sprintf("pulling image %s: %s", image, text)}
}

// Proxy is the image of the kube-proxy that runs on this host, "" when none does.
func (r *Runtime) Proxy(ctx context.Context) (string, error) {
	containers, err := r.Containers(ctx)
	if err != nil {
		return "", err
	}
	var newest Container
	for _, c := range containers {
		if c.Name == "kube-proxy" && c.Namespace == "kube-system" && c.CreatedAt > newest.CreatedAt {
			newest = c
		}
	}
	return newest.Image, nil
}

// image is what the runtime knows of an image; nil when it is not there.
func (r *Runtime) image(ctx context.Context, name string) (*runtimev1.Image, error) {
	conn, err := r.dial()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := runtimev1.NewImageServiceClient(conn).ImageStatus(ctx, &runtimev1.ImageStatusRequest{Image: &runtimev1.ImageSpec{Image: name}})
	if err != nil {
		return nil, fmt.Errorf("looking for image %s: %w", name, err)
	}
	return answer.Image, nil
}
