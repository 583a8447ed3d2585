package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/health"
)

func TestAReportIsReadAsItWasWrittenAndByOtherVersions(t *testing.T) {
	want := health.Report{Program: "abc", Version: "v1.2.3", ExecutorAnswers: true, Refused: "forbidden"}
	data, err := want.Encode()
	require.NoError(t, err)
	got, err := health.Decode(data)
	require.NoError(t, err)
	assert.Equal(t, want, got)

	got, err = health.Decode([]byte(`{"program":"abc","version":"v9","reported":true,"mood":"fine"}`))
	require.NoError(t, err)
	assert.Equal(t, health.Report{Program: "abc", Version: "v9", Reported: true}, got)
}

func FuzzDecodeHealth(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"program":"abc","reported":true}`, `{"program":1}`, "[]", "null"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := health.Decode(data)
		if err != nil {
			return
		}
		text, err := r.Encode()
		require.NoError(t, err)
		again, err := health.Decode(text)
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
