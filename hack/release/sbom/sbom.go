// Package sbom writes what a release is made of, as its programs tell it themselves: the modules that Go has linked.
package sbom

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// Write describes programs, by their paths below root, in CycloneDX's JSON.
func Write(w io.Writer, version string, at time.Time, root string, programs []string) error {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: at.UTC().Format(time.RFC3339),
		Component: &cdx.Component{BOMRef: "refit", Type: cdx.ComponentTypeApplication, Name: "refit", Version: version},
	}
	components, modules, dependencies := []cdx.Component{}, map[string]cdx.Component{}, []cdx.Dependency{}
	for _, program := range slices.Sorted(slices.Values(programs)) {
		c, linked, err := describe(root, program, version)
		if err != nil {
			return fmt.Errorf("looking into %s: %w", program, err)
		}
		components = append(components, c)
		refs := []string{}
		for _, m := range linked {
			modules[m.BOMRef] = m
			refs = append(refs, m.BOMRef)
		}
		slices.Sort(refs)
		dependencies = append(dependencies, cdx.Dependency{Ref: c.BOMRef, Dependencies: &refs})
	}
	for _, m := range modules {
		components = append(components, m)
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	bom.Components, bom.Dependencies = &components, &dependencies
	if err := cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_5); err != nil {
		return fmt.Errorf("writing the SBOM: %w", err)
	}
	return nil
}

func describe(root, program, version string) (cdx.Component, []cdx.Component, error) {
	path := filepath.Join(root, program)
	data, err := os.ReadFile(path)
	if err != nil {
		return cdx.Component{}, nil, fmt.Errorf("reading: %w", err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return cdx.Component{}, nil, fmt.Errorf("reading its build information: %w", err)
	}
	sum := sha256.Sum256(data)
	c := cdx.Component{
		BOMRef: filepath.ToSlash(program), Type: cdx.ComponentTypeApplication, Name: filepath.ToSlash(program), Version: version,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}
	linked := []cdx.Component{module("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		linked = append(linked, module(effective(m)))
	}
	return c, linked, nil
}

// effective is the module that was linked in the place of the one that is asked for.
func effective(m *debug.Module) (path, version string) {
	if m.Replace != nil {
		m = m.Replace
	}
	return m.Path, m.Version
}

func module(path, version string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
}
