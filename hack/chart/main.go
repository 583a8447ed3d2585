// Command chart writes the Helm chart from the plain manifests, so that there is one source of both.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refit-dev/refit/deploy"
)

func main() {
	out := flag.String("out", "deploy/chart", "the chart's directory, of which all is written anew")
	flag.Parse()
	files, err := generate(deploy.Manifests)
	if err == nil {
		err = write(*out, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// generate makes the chart's files, by their path in the chart, of the manifests.
func generate(manifests fs.FS) (map[string]string, error) {
	files, d := map[string]string{}, &defaults{}
	err := fs.WalkDir(manifests, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(manifests, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		template, err := templateOf(name, text, d)
		if err != nil {
			return fmt.Errorf("making a template of %s: %w", name, err)
		}
		files["templates/"+strings.ReplaceAll(name, "/", "-")] = template
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	if files["values.yaml"], err = d.values(); err != nil {
		return nil, err
	}
	files["values.schema.json"] = schema
	files["Chart.yaml"] = strings.ReplaceAll(chart, "TAG", d.tag)
	files["templates/NOTES.txt"] = notes
	files["README.md"] = readme
	return files, nil
}

// write replaces what the directory holds: a manifest that is gone takes its template with it.
func write(dir string, files map[string]string) error {
	if err := os.RemoveAll(filepath.Join(dir, "templates")); err != nil {
		return fmt.Errorf("emptying the chart: %w", err)
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		target := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("making the chart's directories: %w", err)
		}
		if err := os.WriteFile(target, []byte(files[name]), 0o644); err != nil {
			return fmt.Errorf("writing the chart: %w", err)
		}
	}
	return nil
}
