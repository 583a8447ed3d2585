package report

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestNoCredentialOfASourceIsReported(t *testing.T) {
	const uri = "https://user:secret@mirror.corp/deb"
	s := State{
		Planning:  &Planning{Refused: &v1alpha1.Failure{Reason: "RepoUnreachable", Message: uri + " is away"}},
		Operation: &v1alpha1.Operation{ID: "g1", Description: "fetching " + uri},
		Passed:    []v1alpha1.PassedMinor{{Minor: "v1.37", Message: uri}},
	}
	text, err := json.Marshal(Status(s))
	require.NoError(t, err)
	assert.NotContains(t, string(text), "secret")
	assert.Contains(t, string(text), "https://REDACTED@mirror.corp/deb is away")

	step := upgrade.Step{Kind: upgrade.StepSwitchSource, Source: &upgrade.SourceChange{Name: "kubernetes", To: uri}}
	s.Planning = &Planning{Plan: &upgrade.Plan{Steps: []upgrade.Step{step}}}
	text, err = json.Marshal(Status(s))
	require.NoError(t, err)
	assert.NotContains(t, string(text), "secret")
}
