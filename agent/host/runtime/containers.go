package runtime

import (
	"context"
	"strings"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Labels that the kubelet gives to its containers.
const (
	labelContainer = "io.kubernetes.container.name"
	labelNamespace = "io.kubernetes.pod.namespace"
)

// Container is a running container of a pod.
type Container struct {
	ID        string
	Name      string // as in the pod
	Namespace string
	Image     string // with its tag, where there is one
	CreatedAt int64  // nanoseconds
}

// Containers lists the running containers.
func (r *Runtime) Containers(ctx context.Context) ([]Container, error) {
	answer, err := ask(ctx, r, "listing containers", runtimev1.RuntimeServiceClient.ListContainers, &runtimev1.ListContainersRequest{
		Filter: &runtimev1.ContainerFilter{State: &runtimev1.ContainerStateValue{State: runtimev1.ContainerState_CONTAINER_RUNNING}},
	})
	if err != nil {
		return nil, err
	}
	containers := make([]Container, 0, len(answer.Containers))
	for _, c := range answer.Containers {
		containers = append(containers, Container{
			ID: c.Id, Name: c.Labels[labelContainer], Namespace: c.Labels[labelNamespace],
			Image: r.imageName(ctx, c), CreatedAt: c.CreatedAt,
		})
	}
	return containers, nil
}

// imageName prefers a name with a tag: the kubelet starts containers by image id,
// and the id says nothing about a version.
func (r *Runtime) imageName(ctx context.Context, c *runtimev1.Container) string {
	image := c.GetImage()
	for _, name := range []string{image.GetUserSpecifiedImage(), image.GetImage()} {
		if Tag(name) != "" {
			return name
		}
	}
	known, err := r.image(ctx, image.GetImage())
	if err != nil || known == nil || len(known.RepoTags) == 0 {
		return image.GetImage()
	}
	return known.RepoTags[0]
}

// Tag is the tag of an image name, "" when it has none: an id or a bare digest.
func Tag(name string) string {
	if strings.HasPrefix(name, "sha256:") {
		return ""
	}
	name, _, _ = strings.Cut(name, "@")
	last := name[strings.LastIndexByte(name, '/')+1:]
	_, tag, _ := strings.Cut(last, ":")
	return tag
}
