package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// imageName is the repository name, without registry and tag, of the image that is replaced.
const imageName = "refit-coordinator"

// order in which kinds are applied; the kinds not named come after it, and are taken away first.
var order = []string{"Namespace", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}

// Load reads every manifest of a file tree, in the order in which to apply them.
func Load(files fs.FS) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("reading manifest %s: %w", name, err)
		}
		objects, err := decode(text)
		if err != nil {
			return fmt.Errorf("decoding manifest %s: %w", name, err)
		}
		out = append(out, objects...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return out, nil
}

func rank(o *unstructured.Unstructured) int {
	if i := slices.Index(order, o.GetKind()); i >= 0 {
		return i
	}
	return len(order)
}

func decode(text []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// SetImage sets the coordinator's image in its Deployment. It is an error when no container has it.
func SetImage(objects []*unstructured.Unstructured, image string) error {
	return setImage(objects, "Deployment", imageName, image)
}

func setImage(objects []*unstructured.Unstructured, kind, repository, image string) error {
	err := editContainers(objects, kind, func(c map[string]any) bool {
		old, _ := c["image"].(string)
		if repositoryName(old) != repository {
			return false
		}
		c["image"] = image
		return true
	})
	if err != nil {
		return fmt.Errorf("the manifests have no %s with an image named %s: %w", kind, repository, err)
	}
	return nil
}

// editContainers changes containers of a kind of workload. It is an error when none was changed.
func editContainers(objects []*unstructured.Unstructured, kind string, edit func(container map[string]any) bool) error {
	found := false
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil {
			return fmt.Errorf("reading the containers of %s: %w", title(o), err)
		}
		for _, c := range containers {
			if container, ok := c.(map[string]any); ok && edit(container) {
				found = true
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			return fmt.Errorf("changing the containers of %s: %w", title(o), err)
		}
	}
	if !found {
		return errors.New("no container was changed")
	}
	return nil
}

// repositoryName is the last part of an image's name, without tag and digest.
func repositoryName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name, _, _ := strings.Cut(path.Base(image), ":")
	return name
}
