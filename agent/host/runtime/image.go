package runtime

import (
	"context"
	"fmt"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
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
		return fmt.Errorf("pulling image %s: %w", image, err)
	}
	return nil
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
