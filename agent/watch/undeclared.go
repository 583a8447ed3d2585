package watch

import (
	"errors"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// undeclared is how an API server names a field of an apply that its CRD does not have.
var undeclared = regexp.MustCompile(`(?m)\.status\.([^\s:]+): field not declared in schema`)

// index of an element in the path of a field: [0], or [name="x"].
var index = regexp.MustCompile(`\[[^\]]*\]`)

// undeclaredFields are the paths below status, without indices, that an answer names. The CRDs of a cluster may be of an
// earlier version than the agent.
func undeclaredFields(err error) [][]string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return nil
	}
	var paths [][]string
	for _, m := range undeclared.FindAllStringSubmatch(answer.Status().Message, -1) {
		paths = append(paths, strings.Split(index.ReplaceAllString(m[1], ""), "."))
	}
	return paths
}

// leaveOut takes fields out of a status, in each element of the lists on the way; it says whether there was any of them.
func leaveOut(status any, path []string) bool {
	switch v := status.(type) {
	case []any:
		found := false
		for _, element := range v {
			found = leaveOut(element, path) || found
		}
		return found
	case map[string]any:
		if len(path) > 1 {
			return leaveOut(v[path[0]], path[1:])
		}
		_, found := v[path[0]]
		delete(v, path[0])
		return found
	}
	return false
}
