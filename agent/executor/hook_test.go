package executor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
)

func TestAHookIsToldWhereItStands(t *testing.T) {
	rec := worker(t).finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Equal(t, "REFIT_MACHINE=w1 REFIT_OPERATION=grant-1 REFIT_OPERATION_TYPE=Upgrade REFIT_DISRUPTION=Drain REFIT_HOOK_PHASE=PreApply", rec.Steps[1].Message)
	b := rebooting(t)
	_, _, _ = b.run()
	rec = b.finish()
	assert.Contains(t, rec.Steps[4].Message, "REFIT_HOOK_PHASE=PostApply")
}
