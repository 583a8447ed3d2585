package upgrade

import (
	"strconv"
	"strings"

	"github.com/refit-dev/refit/pkg/redact"
)

// Describe is a step for people: what, and on what.
func (s Step) Describe() string {
	text := string(s.Kind)
	if on := s.object(); on != "" {
		text += ": " + on
	}
	return text
}

func (s Step) object() string {
	switch {
	case s.Kubeadm != nil:
		return s.Kubeadm.object()
	case s.Source != nil:
		return redact.URIs(s.Source.Name + " to " + s.Source.To)
	case s.File != nil && s.File.Remove:
		return "remove " + s.File.Path
	case s.File != nil:
		return s.File.Path
	case len(s.Packages) > 0:
		return s.packageList()
	case s.Renewal != nil:
		return s.Renewal.object()
	case s.Expect != nil:
		return ""
	}
	text := strings.TrimSpace(s.Unit + s.Hook + s.Pod + s.Reason)
	if s.Down {
		text += ", which did not run before; it may stay down"
	}
	return text
}

// Count is a number with the word that goes with it.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func (s Step) packageList() string {
	words := make([]string, 0, len(s.Packages))
	for _, p := range s.Packages {
		switch {
		case s.Kind != StepInstallPackages:
			words = append(words, p.Name)
		case p.To == "":
			words = append(words, "remove "+p.Name)
		default:
			words = append(words, p.Name+" "+p.To)
		}
	}
	return strings.Join(words, ", ")
}
