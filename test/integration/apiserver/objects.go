package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/refit-dev/refit/test/checkout"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// InstallCRDs applies deploy/crds of this repository and waits until the kinds are served.
func (s *Server) InstallCRDs(ctx context.Context) error {
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "deploy", "crds")
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("finding CRDs in %s: %d files: %w", dir, len(files), err)
	}
	if err := s.ApplyFiles(ctx, files...); err != nil {
		return err
	}
	return s.awaitEstablished(ctx)
}

// ApplyFiles applies every document of the files as administrator, by server-side apply with force.
func (s *Server) ApplyFiles(ctx context.Context, files ...string) error {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a manifest: %w", err)
		}
		if err := s.Apply(ctx, text); err != nil {
			return fmt.Errorf("applying %s: %w", file, err)
		}
	}
	return nil
}

// Apply applies every YAML document of the text as administrator, by server-side apply with force.
func (s *Server) Apply(ctx context.Context, text []byte) error {
	mapper, err := s.mapper()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(s.admin)
	if err != nil {
		return fmt.Errorf("making a dynamic client: %w", err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var obj unstructured.Unstructured
		err := decoder.Decode(&obj)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("decoding a manifest: %w", err)
		case len(obj.Object) == 0:
			continue
		}
		if err := applyOne(ctx, client, mapper, &obj); err != nil {
			return err
		}
	}
}

func applyOne(ctx context.Context, client dynamic.Interface, mapper apimeta.RESTMapper, obj *unstructured.Unstructured) error {
	gvk := obj.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("finding the resource of %s: %w", gvk, err)
	}
	var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == apimeta.RESTScopeNameNamespace {
		namespace := obj.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		resource = client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = resource.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "refit-test", Force: true})
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	return nil
}

func (s *Server) mapper() (apimeta.RESTMapper, error) {
	client, err := discovery.NewDiscoveryClientForConfig(s.admin)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return nil, fmt.Errorf("discovering the served kinds: %w", err)
	}
	return restmapper.NewDiscoveryRESTMapper(groups), nil
}

func (s *Server) awaitEstablished(ctx context.Context) error {
	client, err := dynamic.NewForConfig(s.admin)
	if err != nil {
		return fmt.Errorf("making a dynamic client: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := client.Resource(crds).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if !established(&list.Items[i]) {
				return false, nil
			}
		}
		return s.served()
	})
	if err != nil {
		return fmt.Errorf("waiting for the CRDs: %w", err)
	}
	return nil
}

// served asks discovery: a CRD is established a moment before it is listed there.
func (s *Server) served() (bool, error) {
	mapper, err := s.mapper()
	if err != nil {
		return false, err
	}
	_, err = mapper.RESTMapping(schema.GroupKind{Group: "refit.dev", Kind: "Machine"}, "v1alpha1")
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

func established(crd *unstructured.Unstructured) bool {
	var typed struct {
		Status struct{ Conditions []metav1.Condition }
	}
	text, err := json.Marshal(crd.Object)
	if err != nil || json.Unmarshal(text, &typed) != nil {
		return false
	}
	return apimeta.IsStatusConditionTrue(typed.Status.Conditions, "Established")
}
