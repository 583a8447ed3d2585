package hostpolicy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxSize bounds a policy file: nobody writes a longer one.
const MaxSize = 64 << 10

// StepKinds are those that a policy may deny: what a plan does to a host.
var StepKinds = []string{
	"UnholdPackages", "SwitchSource", "InstallPackages", "WriteConfig", "KubeadmUpgrade", "KubeadmRenewCertificates",
	"RestartStaticPod", "StopSandboxes", "RestartUnit", "RunHook", "Reboot",
}

// Decode reads a policy strictly: a field or a value that is not understood may be the one
// that was to keep the host safe. An empty file is the policy of a host without one.
func Decode(data []byte) (Policy, error) {
	var p Policy
	if len(data) > MaxSize {
		return p, fmt.Errorf("it has more than %d bytes: keep it short", MaxSize)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		return p, explain(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return p, errors.New("there is more in it than one document: leave one")
	}
	root := doc.Content[0]
	if err := noOddNodes(root); err != nil {
		return p, err
	}
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" { // comments alone, after a ---
		return p, nil
	}
	strict := yaml.NewDecoder(bytes.NewReader(data))
	strict.KnownFields(true)
	if err := strict.Decode(&p); err != nil {
		return Policy{}, explain(err)
	}
	if err := p.check(root); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// noOddNodes refuses a value that is left out, which could mean nothing or everything, and
// what makes one text stand for another.
func noOddNodes(root *yaml.Node) error {
	var walk func(n *yaml.Node, inside bool) error
	walk = func(n *yaml.Node, inside bool) error {
		switch {
		case n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge" || n.Style&yaml.TaggedStyle != 0:
			return fmt.Errorf("line %d: write the value out: anchors, aliases, merges and tags are not read here", n.Line)
		case inside && n.Kind == yaml.ScalarNode && n.Tag == "!!null":
			return fmt.Errorf("line %d: there is no value: write [] for none, or take the field away", n.Line)
		}
		for _, below := range n.Content {
			if err := walk(below, true); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(root, false)
}

var (
	unknownField = regexp.MustCompile(`(?s)field (.+) not found in type hostpolicy\.([A-Za-z]+)`)
	wrongType    = regexp.MustCompile(`(?s)cannot unmarshal !\S*(?: .*)? into (.+)$`)
	goTypes      = regexp.MustCompile(`hostpolicy\.[A-Za-z]+`)
)

// known are the fields of the policy's parts, for whoever has mistaken one.
var known = map[string]string{
	"Policy": "sources, packages, hooks, steps, kubelet", "Sources": "allow, new, keyrings", "Packages": "allow, deny, remove",
	"Hooks": "allow", "Steps": "deny", "Kubelet": "allow",
}

// explain says in words of the file what the YAML library says in those of Go.
func explain(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	var mistyped *yaml.TypeError
	if errors.As(err, &mistyped) && len(mistyped.Errors) > 0 {
		text = mistyped.Errors[0] // one after the other
	}
	if m := unknownField.FindStringSubmatch(text); m != nil {
		text = unknownField.ReplaceAllLiteralString(text, fmt.Sprintf("there is no field %q; known here: %s", m[1], known[m[2]]))
	}
	if m := wrongType.FindStringSubmatch(text); m != nil {
		want := "a list of texts"
		switch {
		case m[1] == "bool":
			want = "true or false"
		case m[1] == "string":
			want = "a text"
		case goTypes.MatchString(m[1]):
			want = "fields of its own"
		}
		text = wrongType.ReplaceAllLiteralString(text, "this is not "+want)
	}
	return errors.New(text)
}

var (
	keyringName  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	hostName     = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]{1,5})?$`)
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9*?\[\]!^._+:-]+$`)
	kubeletField = regexp.MustCompile(`^[A-Za-z]+$`)
)

// check refuses entries that could never allow or deny anything: they were meant otherwise.
func (p Policy) check(root *yaml.Node) error {
	for _, list := range []struct {
		part, field string
		values      []string
		problem     func(string) string
	}{
		{"sources", "allow", p.Sources.Allow, sourceProblem},
		{"sources", "keyrings", p.Sources.Keyrings, func(s string) string {
			return unless(keyringName.MatchString(s), "is no bare name of a keyring, such as kubernetes")
		}},
		{"packages", "allow", p.Packages.Allow, patternProblem},
		{"packages", "deny", p.Packages.Deny, patternProblem},
		{"packages", "remove", p.Packages.Remove, patternProblem},
		{"hooks", "allow", p.Hooks.Allow, patternProblem},
		{"steps", "deny", p.Steps.Deny, func(s string) string {
			return unless(slices.Contains(StepKinds, s), "is no step that can be denied: "+strings.Join(StepKinds, ", "))
		}},
		{"kubelet", "allow", p.Kubelet.Allow, func(s string) string {
			return unless(kubeletField.MatchString(s) && RefusedKubeletField(s, nil), "is no field of the kubelet's configuration that is refused otherwise")
		}},
	} {
		for i, value := range list.values {
			if problem := list.problem(value); problem != "" {
				return fmt.Errorf("line %d: %s.%s: %q %s: correct it", lineOf(root, list.part, list.field, i), list.part, list.field, value, problem)
			}
		}
	}
	return nil
}

func unless(fine bool, problem string) string {
	if fine {
		return ""
	}
	return problem
}

func patternProblem(pattern string) string {
	_, err := path.Match(pattern, "")
	return unless(err == nil && namePattern.MatchString(pattern), "is no name, nor a pattern with * and ?")
}

func sourceProblem(entry string) string {
	const want = "is neither a host such as mirror.corp, nor an http or https URI such as https://mirror.corp/kubernetes/ without user and query"
	if !strings.Contains(entry, "://") {
		return unless(hostName.MatchString(entry), want)
	}
	uri, err := url.Parse(entry)
	return unless(err == nil && plain(uri), want)
}

// lineOf is the line of an entry of a list.
func lineOf(root *yaml.Node, part, field string, i int) int {
	if list := valueOf(valueOf(root, part), field); list != nil && i < len(list.Content) {
		return list.Content[i].Line
	}
	return 1
}

func valueOf(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}
