package hostpolicy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Path is where the policy of a host is.
const Path = "/etc/refit/policy.yaml"

// Policy is what the owner of a host allows. Its zero value is that of a host without a file.
type Policy struct {
	Sources  Sources  `json:"sources,omitzero"`
	Packages Packages `json:"packages,omitzero"`
	Hooks    Hooks    `json:"hooks,omitzero"`
	Steps    Steps    `json:"steps,omitzero"`
	Kubelet  Kubelet  `json:"kubelet,omitzero"`
}

// Sources are those that a spec may name besides the ones that the host has.
type Sources struct {
	// Allow are beginnings of URIs, or hosts.
	Allow []string `json:"allow,omitzero"`
	// New lets a spec add a source; else it may only point one that is there to another place.
	New bool `json:"new,omitempty"`
	// Keyrings are names that a spec may use in signedBy, besides those of the host's own sources.
	Keyrings []string `json:"keyrings,omitzero"`
}

// Packages are patterns of names. A deny wins over an allow.
type Packages struct {
	// Allow is every package where it is not set.
	Allow []string `json:"allow,omitzero"`
	Deny  []string `json:"deny,omitzero"`
	// Remove are packages that may be removed although the host is held to need them.
	Remove []string `json:"remove,omitzero"`
}

// Hooks are patterns of names.
type Hooks struct {
	// Allow is every hook of the host where it is not set.
	Allow []string `json:"allow,omitzero"`
}

// Steps are kinds of steps.
type Steps struct {
	Deny []string `json:"deny,omitzero"`
}

// Kubelet is about spec.kubelet.configuration.
type Kubelet struct {
	// Allow are fields that no spec may set otherwise.
	Allow []string `json:"allow,omitzero"`
}

// Violation is one thing that the policy does not allow.
type Violation struct {
	// Field of the policy that decides.
	Field string
	// What is outside, and where it was asked for.
	What string
	// Remedy on the side of the policy.
	Remedy string
}

// String names field and value, and what to do.
func (v Violation) String() string {
	return fmt.Sprintf("%s is outside %s of this host's policy: take it out of spec, or have the host's owner %s in %s", v.What, v.Field, v.Remedy, Path)
}

// Package says whether a package may be touched at all.
func (p Policy) Package(name string) *Violation {
	what := "package " + quoted(name)
	if pattern, denied := matching(p.Packages.Deny, name); denied {
		return &Violation{"packages.deny", what, "take " + quoted(pattern) + " away"}
	}
	if _, allowed := matching(p.Packages.Allow, name); p.Packages.Allow != nil && !allowed {
		return &Violation{"packages.allow", what, "add it"}
	}
	return nil
}

// Removes says that a package may be removed although the host is held to need it.
func (p Policy) Removes(name string) bool {
	_, allowed := matching(p.Packages.Remove, name)
	return allowed
}

// Removal is the violation of the removal of a package that the host needs.
func (p Policy) Removal(name string) *Violation {
	if p.Removes(name) {
		return nil
	}
	return &Violation{"packages.remove", "the removal of package " + quoted(name) + ", which the host needs,", "add it"}
}

// Hook says whether a hook may be run.
func (p Policy) Hook(name string) *Violation {
	if _, allowed := matching(p.Hooks.Allow, name); p.Hooks.Allow == nil || allowed {
		return nil
	}
	return &Violation{"hooks.allow", "hook " + quoted(name), "add it"}
}

// Step says whether a step of some kind may be done.
func (p Policy) Step(kind string) *Violation {
	if !slices.Contains(p.Steps.Deny, kind) {
		return nil
	}
	return &Violation{"steps.deny", "step " + quoted(kind), "take it away"}
}

// KubeletFields are those fields of a configuration of the kubelet that no spec may set, sorted.
func (p Policy) KubeletFields(config map[string]any) []string {
	var out []string
	for name, value := range config {
		if RefusedKubeletField(name, value) && !slices.Contains(p.Kubelet.Allow, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// KubeletField is the violation of a setting that is refused.
func (p Policy) KubeletField(name string) *Violation {
	return &Violation{"kubelet.allow", "kubelet configuration field " + quoted(name), "add it"}
}

// refusedKubeletFields decide who may tell the kubelet what, what it runs without being asked
// by its API server, and what it talks to: whoever sets them is root on the host by another way.
var refusedKubeletFields = []string{
	"staticPodPath", "staticPodURL", "staticPodURLHeader", "authentication", "authorization", "containerRuntimeEndpoint", "imageServiceEndpoint",
	"volumePluginDir", readOnlyPort,
}

// readOnlyPort lets everybody ask the kubelet, unless it is off.
const readOnlyPort = "readOnlyPort"

// RefusedKubeletField says that a field may not be set to a value unless the policy allows it.
func RefusedKubeletField(name string, value any) bool {
	if name == readOnlyPort && value == float64(0) {
		return false
	}
	return slices.Contains(refusedKubeletFields, name) || strings.HasPrefix(name, "tls")
}

// matching is the first pattern that a name is like.
func matching(patterns []string, name string) (pattern string, found bool) {
	for _, pattern := range patterns {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return pattern, true
		}
	}
	return "", false
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }
