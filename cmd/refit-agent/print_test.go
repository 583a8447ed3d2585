package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// What fetches needs the password of a source, and nobody who reads does.
func TestNoCredentialOfASourceIsPrinted(t *testing.T) {
	const uri, clean = "https://user:secret@mirror.corp/deb", "https://REDACTED@mirror.corp/deb"
	step := upgrade.Step{Kind: upgrade.StepSwitchSource, Source: &upgrade.SourceChange{Name: "kubernetes", From: uri, To: uri}}
	list := preview.PlanList{Items: []preview.MachinePlan{{
		Steps:   []preview.Step{{Description: step.Describe(), Step: step}},
		Refusal: &upgrade.Blocked{Reason: "RepoUnreachable", Message: uri + " is away"},
	}}}
	facts := upgrade.Facts{Packages: upgrade.PackageFacts{Sources: []upgrade.SourceFacts{{URI: uri}}}}
	for name, print := range map[string]func(out *bytes.Buffer) error{
		"facts as yaml":   func(out *bytes.Buffer) error { return encode(out, "yaml", facts) },
		"facts as json":   func(out *bytes.Buffer) error { return encode(out, "json", facts) },
		"a plan as table": func(out *bytes.Buffer) error { return printPlans(out, "table", list) },
		"a plan as json":  func(out *bytes.Buffer) error { return printPlans(out, "json", list) },
		"an error":        func(out *bytes.Buffer) error { report(out, errors.New("fetching "+uri)); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, print(&out))
			assert.NotContains(t, out.String(), "secret")
			assert.Contains(t, out.String(), clean)
		})
	}
}
