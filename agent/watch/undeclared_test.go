package watch

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func answer(message string) error {
	return fmt.Errorf("writing: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}})
}

func TestFieldsThatTheCRDDoesNotHaveAreNamed(t *testing.T) {
	const begin = "failed to create typed patch object (refit/w1; refit.dev/v1alpha1, Kind=Machine): "
	for name, tc := range map[string]struct {
		err  error
		want [][]string
	}{
		"one":                {answer(begin + ".status.mood: field not declared in schema"), [][]string{{"mood"}}},
		"in a list":          {answer(begin + `.status.os.packages[0].expendable: field not declared in schema`), [][]string{{"os", "packages", "expendable"}}},
		"in a keyed list":    {answer(begin + `.status.conditions[type="Ready"].mood: field not declared in schema`), [][]string{{"conditions", "mood"}}},
		"several":            {answer(begin + "errors:\n  .status.a: field not declared in schema\n  .status.b.c: field not declared in schema"), [][]string{{"a"}, {"b", "c"}}},
		"not of the status":  {answer(begin + ".spec.mood: field not declared in schema"), nil},
		"another refusal":    {answer("forbidden"), nil},
		"no answer at all":   {errors.New(".status.mood: field not declared in schema"), nil},
		"nothing went wrong": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, undeclaredFields(tc.err)) })
	}
}

func TestAFieldIsLeftOutWhereverItIs(t *testing.T) {
	status := func() map[string]any {
		return map[string]any{"a": "x", "os": map[string]any{"packages": []any{map[string]any{"name": "p", "expendable": true}, map[string]any{"name": "q"}}}}
	}
	s := status()
	assert.True(t, leaveOut(s, []string{"os", "packages", "expendable"}))
	assert.Equal(t, map[string]any{"a": "x", "os": map[string]any{"packages": []any{map[string]any{"name": "p"}, map[string]any{"name": "q"}}}}, s)
	assert.True(t, leaveOut(s, []string{"a"}))
	assert.NotContains(t, s, "a")
	for _, none := range [][]string{{"b"}, {"a", "b"}, {"os", "packages", "name", "x"}} {
		s = status()
		assert.False(t, leaveOut(s, none), none)
		assert.Equal(t, status(), s)
	}
}

func FuzzUndeclaredFields(f *testing.F) {
	f.Add(".status.os.packages[0].expendable: field not declared in schema")
	f.Add(".status...: field not declared in schema\n.status.[: field not declared in schema")
	f.Fuzz(func(t *testing.T, message string) {
		for _, path := range undeclaredFields(answer(message)) {
			if len(path) == 0 {
				t.Fatal("a path without a name")
			}
			leaveOut(map[string]any{"a": []any{map[string]any{"b": 1}}}, path)
		}
	})
}
