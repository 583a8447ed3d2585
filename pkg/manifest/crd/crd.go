// Package crd judges objects with what the API server itself judges them with, by the
// CRDs that Refit installs. It is large, and so does not belong into the agent.
package crd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/deploy"
	"github.com/refit-dev/refit/pkg/manifest"
)

// Check judges an object of a kind of refit.dev; old is the object that it would replace, or nil.
func Check(kind string, object, old map[string]any) ([]manifest.Fault, error) {
	s, err := SchemaOf(kind)
	if err != nil || s == nil {
		return nil, errors.Join(fmt.Errorf("the schema of %s is not known", kind), err)
	}
	var faults []manifest.Fault
	for _, err := range s.validate(object, old) {
		message := err.ErrorBody()
		if err.Type == field.ErrorTypeForbidden {
			message = manifest.UnknownField
		}
		path := err.Field
		if path == "<nil>" { // the object as a whole
			path = ""
		}
		faults = append(faults, manifest.Fault{Field: path, Message: message})
	}
	return faults, nil
}

// celPerCallLimit bounds one rule, as the API server does.
const celPerCallLimit = 1000000

// Schema is one kind of ours, as its CRD has it.
type Schema struct {
	// Structural is for whoever walks the fields.
	Structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// schemas are those of the CRDs that Refit installs, read once.
var schemas = sync.OnceValues(readSchemas)

// SchemaOf is the schema of a kind of refit.dev/v1alpha1; nil when there is none.
func SchemaOf(kind string) (*Schema, error) {
	all, err := schemas()
	return all[kind], err
}

func readSchemas() (map[string]*Schema, error) {
	files, err := fs.Glob(deploy.Manifests, "crds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the CRDs: %w", err)
	}
	all := map[string]*Schema{}
	for _, file := range files {
		text, err := deploy.Manifests.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := sigsyaml.Unmarshal(text, crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if all[crd.Spec.Names.Kind], err = newSchema(crd); err != nil {
			return nil, fmt.Errorf("reading the schema in %s: %w", file, err)
		}
	}
	return all, nil
}

func newSchema(crd *apiextensionsv1.CustomResourceDefinition) (*Schema, error) {
	for _, version := range crd.Spec.Versions {
		if version.Name != v1alpha1.GroupVersion.Version {
			continue
		}
		props := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, props, nil); err != nil {
			return nil, fmt.Errorf("converting it: %w", err)
		}
		structural, err := schema.NewStructural(props)
		if err != nil {
			return nil, fmt.Errorf("finding its structure: %w", err)
		}
		validator, _, err := validation.NewSchemaValidator(props)
		if err != nil {
			return nil, fmt.Errorf("preparing it: %w", err)
		}
		return &Schema{Structural: structural, validator: validator, rules: cel.NewValidator(structural, true, celPerCallLimit)}, nil
	}
	return nil, fmt.Errorf("%s has no version %s", crd.Name, v1alpha1.GroupVersion.Version)
}

// validate is what the API server finds wrong with an object; old is the object that it would replace, or nil.
func (s *Schema) validate(object, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(object), s.Structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: path, Detail: "there is no such field", BadValue: ""})
	}
	errs = append(errs, validation.ValidateCustomResource(nil, object, s.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.Structural, object)...)
	if blocking(errs) {
		return errs // the rules count on the right types
	}
	var before any
	if old != nil {
		before = old
	}
	found, _ := s.rules.Validate(context.Background(), nil, s.Structural, object, before, math.MaxInt64)
	return append(errs, found...)
}

func blocking(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
