package api

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// One object that cannot be decoded would stop every list and watch of its kind, and the
// whole fleet with it: what its types cannot hold has to be refused by the API server.
func TestNothingIsTakenThatCannotBeDecoded(t *testing.T) {
	roots := map[string]reflect.Type{
		"Machine": reflect.TypeFor[v1alpha1.Machine](), "MachineDeployment": reflect.TypeFor[v1alpha1.MachineDeployment](),
		"MachineDisruptionBudget": reflect.TypeFor[v1alpha1.MachineDisruptionBudget](), "Ledger": reflect.TypeFor[v1alpha1.Ledger](),
	}
	judged := map[string]int{}
	for kind, schema := range schemas(t) {
		walk(kind, schema, func(path string, s apiextensionsv1.JSONSchemaProps) {
			if strings.HasPrefix(path, kind+".metadata") {
				return
			}
			rules := ""
			for _, r := range s.XValidations {
				rules += r.Rule + "\n"
			}
			switch goType := typeAt(t, roots[kind], strings.TrimPrefix(path, kind+".")); goType {
			case reflect.TypeFor[metav1.Duration]():
				judged["durations"]++
				assert.True(t, s.MaxLength != nil && *s.MaxLength <= 32, "%s: an endless duration overflows", path)
				assert.Contains(t, rules, "self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(", "%s: what Go does not read is refused", path)
			case reflect.TypeFor[intstr.IntOrString]():
				judged["counts"]++
				assert.Contains(t, rules, "self <= 1000000", "%s: a number that does not fit is refused", path)
			case reflect.TypeFor[metav1.Time]():
				judged["times"]++
				assert.Equal(t, "date-time", s.Format, path)
			default:
				if goType.Kind() == reflect.Int32 {
					judged["numbers"]++
					assert.Equal(t, "int32", s.Format, path)
				}
			}
		})
	}
	for _, what := range []string{"durations", "counts", "times", "numbers"} {
		assert.Greater(t, judged[what], 4, what)
	}
	longest, err := time.ParseDuration("99999h99999h99999h99999h99999h9h")
	require.NoError(t, err, "the longest text of hours that 32 characters hold")
	assert.Positive(t, longest)
}

// typeAt follows the names of fields from a type, through pointers, lists and maps.
func typeAt(t *testing.T, of reflect.Type, path string) reflect.Type {
	t.Helper()
	for _, name := range strings.Split(path, ".") {
		depth := strings.Count(name, "[]") + strings.Count(name, "{}")
		name = strings.NewReplacer("[]", "", "{}", "").Replace(name)
		at := slices.IndexFunc(reflect.VisibleFields(of), func(f reflect.StructField) bool {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return tag == name
		})
		require.GreaterOrEqual(t, at, 0, "%s has no field %s", of, name)
		of = pointed(reflect.VisibleFields(of)[at].Type)
		for range depth {
			of = pointed(of.Elem())
		}
	}
	return of
}

func pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
