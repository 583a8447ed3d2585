package manifest

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// document is one YAML document, as values and as nodes that know their lines.
type document struct {
	file  string
	node  *yaml.Node
	value any
}

// documents reads all documents of a text; those without content are left out.
func documents(file, text string) ([]document, Errors) {
	var docs []document
	var errs Errors
	for _, part := range split(text) {
		doc, err := parse(file, part)
		if len(err) > 0 {
			errs = append(errs, err...)
		} else if doc.value != nil {
			docs = append(docs, doc)
		}
	}
	return docs, errs
}

// split cuts a text at its document markers. Each part has the lines before it as
// empty ones, so that whoever reads it counts lines as in the file.
func split(text string) []string {
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	var parts []string
	current := make([]string, 0, len(lines))
	for i, line := range lines {
		rest, marker := strings.CutPrefix(line, "---")
		if marker = marker && (rest == "" || strings.ContainsAny(rest[:1], " \t\r")); marker || strings.TrimRight(line, " \t\r") == "..." {
			parts = append(parts, strings.Join(current, "\n"))
			current = make([]string, i, len(lines))
			line = ""
			if marker {
				line = "   " + rest // what stands behind the marker belongs to the document
			}
		}
		current = append(current, line)
	}
	return append(parts, strings.Join(current, "\n"))
}

var yamlLine = regexp.MustCompile(`^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\s*)?(?:line ([0-9]+): )?`)

func parse(file, text string) (document, Errors) {
	doc := document{file: file, node: &yaml.Node{}}
	decode := func(text string) error {
		return yaml.NewDecoder(strings.NewReader(text)).Decode(&yaml.Node{}) //nolint:wrapcheck // it is compared
	}
	err := yaml.NewDecoder(strings.NewReader(text)).Decode(doc.node)
	if errors.Is(err, io.EOF) {
		return doc, nil
	}
	if err != nil {
		return doc, Errors{located(text, syntaxError(file, err), decode)}
	}
	if errs := duplicates(file, doc.node, ""); len(errs) > 0 {
		return doc, errs
	}
	toJSON := func(text string) error {
		_, err := sigsyaml.YAMLToJSONStrict([]byte(text))
		return err //nolint:wrapcheck // it is compared
	}
	data, err := sigsyaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return doc, Errors{located(text, syntaxError(file, err), toJSON)}
	}
	if err := json.Unmarshal(data, &doc.value); err != nil {
		return doc, Errors{syntaxError(file, err)}
	}
	return doc, nil
}

func syntaxError(file string, err error) Error {
	text := err.Error()
	found := yamlLine.FindStringSubmatch(text)
	out := Error{File: file, Message: "this is neither YAML nor JSON: " + strings.TrimPrefix(text, "yaml: ")}
	if found != nil {
		out.Line, _ = strconv.Atoi(found[1]) // "" where YAML does not say
		out.Message = "this is neither YAML nor JSON: " + strings.TrimPrefix(text, found[0])
	}
	return out
}

// located gives an error without a line that of the first with which it comes up: YAML
// does not say where an anchor is unknown, a value too deep, or a character none.
func located(text string, e Error, decode func(text string) error) Error {
	if e.Line > 0 {
		return e
	}
	lines := strings.SplitAfter(text, "\n")
	at := sort.Search(len(lines), func(i int) bool {
		err := decode(strings.Join(lines[:i+1], ""))
		return err != nil && syntaxError(e.File, err).Message == e.Message
	})
	if at < len(lines) {
		e.Line = at + 1
	}
	return e
}

// duplicates finds keys that a mapping has twice: which of them was meant is anyone's guess.
func duplicates(file string, n *yaml.Node, path string) Errors {
	var errs Errors
	switch n.Kind {
	case yaml.DocumentNode, yaml.SequenceNode:
		for i, child := range n.Content {
			at := path
			if n.Kind == yaml.SequenceNode {
				at = fmt.Sprintf("%s[%d]", path, i)
			}
			errs = append(errs, duplicates(file, child, at)...)
		}
	case yaml.MappingNode:
		first := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			at := strings.TrimPrefix(path+"."+key.Value, ".")
			if line, twice := first[key.Value]; twice {
				errs = append(errs, Error{File: file, Line: key.Line, Field: at, Message: fmt.Sprintf("this key is there twice, first on line %d: keep one", line)})
			} else {
				first[key.Value] = key.Line
			}
			errs = append(errs, duplicates(file, n.Content[i+1], at)...)
		}
	}
	return errs
}

// lineOf is the line of the field with a path such as spec.os.packages[0].name; of what
// is above it where the field is not there.
func lineOf(n *yaml.Node, path string) int {
	n = resolved(n)
	line := n.Line
	for path != "" {
		child, rest := step(n, path)
		if child == nil {
			return line
		}
		line = child.line
		n, path = resolved(child.value), rest
	}
	return line
}

type found struct {
	line  int
	value *yaml.Node
}

// step goes down by the first part of a path. Keys may have dots and brackets in
// them, so that the longest key that the path begins with is taken.
func step(n *yaml.Node, path string) (*found, string) {
	path = strings.TrimPrefix(path, ".")
	if n.Kind == yaml.SequenceNode {
		inside, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		at, err := strconv.Atoi(inside)
		if err != nil || at < 0 || at >= len(n.Content) {
			return nil, ""
		}
		return &found{resolved(n.Content[at]).Line, n.Content[at]}, rest
	}
	if n.Kind != yaml.MappingNode {
		return nil, ""
	}
	var best *found
	var rest string
	longest := -1
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if after, ok := cutKey(path, key); ok && len(key) > longest {
			best, rest, longest = &found{n.Content[i].Line, n.Content[i+1]}, after, len(key)
		}
	}
	return best, rest
}

// cutKey takes a key from the front of a path, written plain or in brackets.
func cutKey(path, key string) (string, bool) {
	if rest, ok := strings.CutPrefix(path, "["+key+"]"); ok {
		return rest, true
	}
	rest, ok := strings.CutPrefix(path, key)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// resolved looks through the document and through an alias to what it stands for.
func resolved(n *yaml.Node) *yaml.Node {
	for {
		switch {
		case n.Kind == yaml.DocumentNode && len(n.Content) > 0:
			n = n.Content[0]
		case n.Kind == yaml.AliasNode && n.Alias != nil:
			n = n.Alias
		default:
			return n
		}
	}
}
