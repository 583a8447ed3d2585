package machinedeployment

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const specSeed = `{"versions":{"kubelet":"v1.37.2"},"os":{"packages":[{"name":"openssl","version":"3"},{"name":"telnet","state":"Absent"}]},"kubeadm":{"ignorePreflightErrors":["CreateJob","Swap"]},"node":{"labels":{"example.com/rack":"a.b"}},"kubelet":{"configuration":{"evictionHard":{"memory.available":"5%"},"a":[{"b":[1]},[2],{"name":{"c":null}}]}}}`

// The paths are the API server's words: whatever it says, only what it names is left out,
// and what is left can still be sent.
func FuzzRemove(f *testing.F) {
	for _, field := range []string{
		"spec.versions.kubelet", `spec.os.packages[name="openssl"].version`, `spec.kubeadm.ignorePreflightErrors[="CreateJob"]`, "spec.node.labels.example.com/rack",
		"spec.kubelet.configuration.evictionHard.memory.available", `spec.kubelet.configuration.a[={"b":[1]}]`, `spec.kubelet.configuration.a[name={"c":null}]`, "spec.[", "spec...", `spec.os.packages["`,
		`spec.os.packages[name="a]`, `spec.os.packages[name="x\"]"].version`, "status.x", "spec.",
	} {
		f.Add(specSeed, field)
	}
	f.Fuzz(func(t *testing.T, text, field string) {
		var spec, before map[string]any
		if json.Unmarshal([]byte(text), &spec) != nil || json.Unmarshal([]byte(text), &before) != nil || spec == nil {
			return
		}
		removed := remove(spec, field)
		left, err := json.Marshal(spec)
		require.NoError(t, err)
		was, err := json.Marshal(before)
		require.NoError(t, err)
		if removed {
			require.NotEqual(t, string(was), string(left), "it says that it was there")
			require.Less(t, len(left), len(was))
		}
	})
}

// Every conflict names a field and whoever owns it, once.
func FuzzConflict(f *testing.F) {
	f.Add(".spec.versions.kubelet", `conflict with "kubectl-edit" using refit.dev/v1alpha1`)
	f.Add("", `conflict with "`)
	f.Add("..a", "")
	f.Fuzz(func(t *testing.T, field, message string) {
		cause := metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: field, Message: message}
		found := conflictsOf(apierrors.NewApplyConflict([]metav1.StatusCause{cause, cause, {Type: metav1.CauseTypeFieldValueInvalid, Field: field}}, "conflict"))
		require.Len(t, found, 1)
		require.Contains(t, field, found[0].Field)
		require.Contains(t, message, found[0].Manager)
		require.False(t, strings.HasPrefix(message, `conflict with ""`) && found[0].Manager != "")
	})
}
