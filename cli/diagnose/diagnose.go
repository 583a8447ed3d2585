// Package diagnose packs what a bug report needs into one archive, without secrets. No Secret and no ConfigMap is ever read.
package diagnose

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/pkg/redact"
)

// Archive is what was read, and what could not be.
type Archive struct {
	Summary Summary
	files   []file
}

// Summary says what the archive has in it.
type Summary struct {
	Refit     string    `json:"refit"`
	Server    string    `json:"kubernetes,omitempty"`
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace"`
	// Machines that were asked for; all when none.
	Machines []string `json:"machines,omitempty"`
	Files    []string `json:"files"`
	// NotRead is what could not be read.
	NotRead []Missing `json:"notRead,omitempty"`
	Secrets string    `json:"secrets"`
}

// Missing is one thing that could not be read, and why.
type Missing struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}

type file struct {
	name string
	text []byte
}

// New is an empty archive.
func New(s Summary) *Archive {
	s.Files = []string{}
	s.Secrets = "Taken out wherever they show by shape or name: keys, tokens, passwords, users and passwords of URIs. Secrets and ConfigMaps were not read. Look through it before you hand it on."
	return &Archive{Summary: s}
}

// Miss notes what could not be read.
func (a *Archive) Miss(what string, err error) {
	a.Summary.NotRead = append(a.Summary.NotRead, Missing{What: what, Reason: redact.Secrets(err.Error())})
}

// Text adds a text, such as a log.
func (a *Archive) Text(name, text string) { a.add(name, []byte(redact.Secrets(text))) }

func (a *Archive) add(name string, text []byte) {
	a.files = append(a.files, file{name, text})
	a.Summary.Files = append(a.Summary.Files, name)
}

// Object adds an object as YAML. What an earlier kubectl apply has left in an annotation is a copy, and left out.
func (a *Archive) Object(name string, o client.Object) error {
	o, _ = o.DeepCopyObject().(client.Object)
	annotations := o.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	o.SetAnnotations(annotations)
	encoded, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	var value any
	if err := json.Unmarshal(encoded, &value); err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	text, err := yaml.Marshal(redact.Object(value))
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	a.add(name, text)
	return nil
}

// Empty says that nothing at all was read.
func (a *Archive) Empty() bool { return len(a.files) == 0 }

// Write writes it as a compressed tar, all below one folder, with the summary first.
func (a *Archive) Write(out io.Writer, folder string) error {
	summary, err := yaml.Marshal(a.Summary)
	if err != nil {
		return fmt.Errorf("encoding the summary: %w", err)
	}
	zipped := gzip.NewWriter(out)
	w := tar.NewWriter(zipped)
	for _, f := range slices.Insert(slices.Clone(a.files), 0, file{"summary.yaml", summary}) {
		header := &tar.Header{Name: folder + "/" + f.name, Mode: 0o600, Size: int64(len(f.text)), ModTime: a.Summary.Time}
		if err := w.WriteHeader(header); err != nil {
			return fmt.Errorf("packing %s: %w", f.name, err)
		}
		if _, err := w.Write(f.text); err != nil {
			return fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}
