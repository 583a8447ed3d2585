package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestAFailureHasAReasonWhateverWentWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		reason string
	}{
		"a step's own":  {fmt.Errorf("around: %w", fail("UnitNotActive", "down")), "UnitNotActive"},
		"a refusal":     {fmt.Errorf("around: %w", &upgrade.Blocked{Reason: "DigestMismatch", Message: "x"}), "DigestMismatch"},
		"time was up":   {fmt.Errorf("waiting: %w", context.DeadlineExceeded), "RestartUnitTimedOut"},
		"anything else": {errors.New("disk"), "RestartUnitFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message := Explain(upgrade.StepRestartUnit, tc.err)
			assert.Equal(t, tc.reason, reason)
			assert.NotEmpty(t, message)
		})
	}
}

func TestAMessageFitsAStatus(t *testing.T) {
	assert.Equal(t, "CGROUPS: enabled\nsecond", Tidy("\x1b[0;37mCGROUPS\x1b[0m: \x1b[0;32menabled\x1b[0m\nsecond\x07"))
	long := Tidy("kubeadm upgrade apply failed: " + strings.Repeat("ö", 5000) + " the reason")
	assert.LessOrEqual(t, len([]rune(long)), maxMessage+3)
	assert.True(t, strings.HasPrefix(long, "kubeadm upgrade apply failed"))
	assert.True(t, strings.HasSuffix(long, "the reason"))
}
