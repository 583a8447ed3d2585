package verbs

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyTheClaimToThatVeryFieldIsTaken(t *testing.T) {
	for name, tc := range map[string]struct{ set, field, left string }{
		"a field among others":                         {`{"f:spec":{"f:paused":{},"f:versions":{"f:kubelet":{}}}}`, "spec.versions.kubelet", `{"f:spec":{"f:paused":{}}}`},
		"a parent that is claimed itself":              {`{"f:spec":{"f:versions":{".":{},"f:kubelet":{}}}}`, "spec.versions.kubelet", `{"f:spec":{"f:versions":{".":{}}}}`},
		"the only field":                               {`{"f:spec":{"f:paused":{}}}`, "spec.paused", `{}`},
		"a field of a list's item":                     {`{"f:spec":{"f:os":{"f:packages":{"k:{\"name\":\"openssl\"}":{".":{},"f:name":{},"f:version":{}}}}}}`, `spec.os.packages[name="openssl"].version`, `{"f:spec":{"f:os":{"f:packages":{"k:{\"name\":\"openssl\"}":{".":{},"f:name":{}}}}}}`},
		"an item with two keys":                        {`{"f:spec":{"k:{\"key\":\"a\",\"effect\":\"NoSchedule\"}":{"f:value":{},".":{}}}}`, `spec[effect="NoSchedule",key="a"]`, `{"f:spec":{"k:{\"key\":\"a\",\"effect\":\"NoSchedule\"}":{"f:value":{}}}}`},
		"an entry of a set":                            {`{"f:spec":{"f:preApply":{"v:\"raid-check\"":{},"v:\"b\"":{}}}}`, `spec.preApply[="raid-check"]`, `{"f:spec":{"f:preApply":{"v:\"b\"":{}}}}`},
		"a label with dots in its name":                {`{"f:spec":{"f:labels":{"f:a.b/c":{},"f:a":{}}}}`, "spec.labels.a.b/c", `{"f:spec":{"f:labels":{"f:a":{}}}}`},
		"a field that begins like it":                  {`{"f:spec":{"f:pausedFor":{},"f:paused":{}}}`, "spec.paused", `{"f:spec":{"f:pausedFor":{}}}`},
		"a parent, of which only children are claimed": {`{"f:spec":{"f:versions":{"f:kubelet":{}}}}`, "spec.versions", ""},
		"a field that it does not claim":               {`{"f:spec":{"f:paused":{}}}`, "spec.versions.kubelet", ""},
	} {
		t.Run(name, func(t *testing.T) {
			entry := metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(tc.set)}
			taken, err := disown(&entry, tc.field)
			require.NoError(t, err)
			if tc.left == "" {
				assert.False(t, taken)
				tc.left = tc.set
			}
			assert.JSONEq(t, tc.left, string(entry.FieldsV1.GetRawBytes()))
		})
	}
}

// FuzzDisown: whatever the fields and the field, the set stays one, and what is taken is gone.
func FuzzDisown(f *testing.F) {
	f.Add(`{"f:spec":{"f:paused":{},"f:versions":{".":{},"f:kubelet":{}}}}`, "spec.versions.kubelet")
	f.Add(`{"f:spec":{"k:{\"name\":\"a\"}":{".":{},"f:v":{}},"v:1":{},"i:0":{}}}`, `spec[name="a"].v`)
	f.Add(`{"f:":{"f:":{}}}`, ".")
	f.Fuzz(func(t *testing.T, set, field string) {
		entry := metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(set)}
		for range 64 { // one path may be spelt in several ways
			taken, err := disown(&entry, field)
			if err != nil || !taken {
				return
			}
			var left map[string]any
			require.NoError(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &left))
			require.Less(t, len(entry.FieldsV1.GetRawBytes()), len(set)+64)
		}
	})
}
