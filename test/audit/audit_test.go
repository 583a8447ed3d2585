package audit

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const log = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a","stage":"ResponseStarted","requestURI":"/apis/refit.dev/v1alpha1/namespaces/refit/machines?watch=true","verb":"watch","user":{"username":"system:node:worker-1"},"userAgent":"refit-agent","requestReceivedTimestamp":"2026-11-30T10:00:00.000000Z","stageTimestamp":"2026-11-30T10:00:00.100000Z"}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"b","stage":"ResponseComplete","verb":"get","user":{"username":"system:serviceaccount:kube-system:kube-proxy","extra":{"authentication.kubernetes.io/node-name":["worker-1"]}},"requestReceivedTimestamp":"2026-11-30T10:01:00.000000Z","stageTimestamp":"2026-11-30T10:01:00.100000Z"}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a","stage":"ResponseComplete","verb":"watch","user":{"username":"system:node:worker-1"},"userAgent":"refit-agent","requestReceivedTimestamp":"2026-11-30T10:00:00.000000Z","stageTimestamp":"2026-11-30T10:09:00.100000Z"}
`

func at(minute int) time.Time { return time.Date(2026, 11, 30, 10, minute, 0, 0, time.UTC) }

func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestAWatchIsOneRequest(t *testing.T) {
	all, err := Between(written(t, log), at(0), at(10))
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, "refit-agent", all[0].UserAgent)
	assert.Equal(t, "worker-1", all[1].Node())
	assert.Empty(t, all[0].Node())
}

func TestOnlyWhatCameInBetweenCounts(t *testing.T) {
	all, err := Between(written(t, log), at(1), at(10))
	require.NoError(t, err)
	require.Len(t, all, 1, "the watch began before, although it ends in between")
	all, err = Between(written(t, log), at(0), at(1))
	require.NoError(t, err)
	require.Len(t, all, 1)
}

func TestALogThatIsNoneIsSaid(t *testing.T) {
	_, err := Between(written(t, log+"torn\n"), at(0), at(10))
	require.ErrorContains(t, err, "line 4")
	all, err := Between(written(t, log+`{"kind":"Ev`), at(0), at(10))
	require.NoError(t, err)
	assert.Len(t, all, 2, "the last line is being written")
	none, err := Between(filepath.Join(t.TempDir(), "none"), at(0), at(10))
	require.NoError(t, err)
	assert.Empty(t, none)
}
