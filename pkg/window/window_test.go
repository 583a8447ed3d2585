package window_test

import (
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/window"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const berlin = "Europe/Berlin"

func spec(schedule string, d time.Duration, zone string) v1alpha1.Window {
	return v1alpha1.Window{Schedule: schedule, Duration: metav1.Duration{Duration: d}, TimeZone: zone}
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at
}

func state(t *testing.T, now string, specs ...v1alpha1.Window) window.State {
	t.Helper()
	s, err := window.Parse(specs)
	require.NoError(t, err)
	return s.At(moment(t, now))
}

func TestWindowsFollowTheClockOnTheWall(t *testing.T) {
	night := spec("0 22 * * *", 6*time.Hour, berlin)
	for name, tc := range map[string]struct {
		now    string
		in     []v1alpha1.Window
		opened string // "" is closed
		closes string
		next   string
	}{
		"before it opens":          {"2030-06-03T21:59:59+02:00", []v1alpha1.Window{night}, "", "", "2030-06-03T22:00:00+02:00"},
		"at the very opening":      {"2030-06-03T22:00:00+02:00", []v1alpha1.Window{night}, "2030-06-03T22:00:00+02:00", "2030-06-04T04:00:00+02:00", "2030-06-04T22:00:00+02:00"},
		"past midnight":            {"2030-06-04T03:59:59+02:00", []v1alpha1.Window{night}, "2030-06-03T22:00:00+02:00", "2030-06-04T04:00:00+02:00", "2030-06-04T22:00:00+02:00"},
		"at the very close":        {"2030-06-04T04:00:00+02:00", []v1alpha1.Window{night}, "", "", "2030-06-04T22:00:00+02:00"},
		"without a zone it is UTC": {"2030-06-03T22:30:00Z", []v1alpha1.Window{spec("0 22 * * *", time.Hour, "")}, "2030-06-03T22:00:00Z", "2030-06-03T23:00:00Z", "2030-06-04T22:00:00Z"},

		"the night that loses an hour has five": {"2030-03-31T03:59:59+02:00", []v1alpha1.Window{night}, "2030-03-30T22:00:00+01:00", "2030-03-31T04:00:00+02:00", "2030-03-31T22:00:00+02:00"},
		"and ends at four":                      {"2030-03-31T04:00:00+02:00", []v1alpha1.Window{night}, "", "", "2030-03-31T22:00:00+02:00"},
		"the night that wins an hour has seven": {"2030-10-27T03:59:59+01:00", []v1alpha1.Window{night}, "2030-10-26T22:00:00+02:00", "2030-10-27T04:00:00+01:00", "2030-10-27T22:00:00+01:00"},
		"an opening that is left out is the change": {
			"2030-03-31T03:00:00+02:00", []v1alpha1.Window{spec("30 2 * * *", 2*time.Hour, berlin)}, "2030-03-31T03:00:00+02:00", "2030-03-31T04:30:00+02:00", "2030-04-01T02:30:00+02:00"},
		"and not before it": {
			"2030-03-31T01:59:59+01:00", []v1alpha1.Window{spec("30 2 * * *", 2*time.Hour, berlin)}, "", "", "2030-03-31T03:00:00+02:00"},
		"a close that is left out is the change": {
			"2030-03-31T01:59:59+01:00", []v1alpha1.Window{spec("0 1 * * *", 90*time.Minute, berlin)}, "2030-03-31T01:00:00+01:00", "2030-03-31T03:00:00+02:00", "2030-04-01T01:00:00+02:00"},
		"a window that is left out does not open": {
			"2030-03-31T03:00:00+02:00", []v1alpha1.Window{spec("15 2 * * *", 30*time.Minute, berlin)}, "", "", "2030-04-01T02:15:00+02:00"},
		"an opening that comes twice is the first": {
			"2030-10-27T02:30:00+02:00", []v1alpha1.Window{spec("30 2 * * *", time.Hour, berlin)}, "2030-10-27T02:30:00+02:00", "2030-10-27T03:30:00+01:00", "2030-10-28T02:30:00+01:00"},
		"and so is a close": {
			"2030-10-27T02:30:00+02:00", []v1alpha1.Window{spec("0 1 * * *", 90*time.Minute, berlin)}, "", "", "2030-10-28T01:00:00+01:00"},
		"south of the equator the other way round": {
			"2030-10-06T03:30:00+11:00", []v1alpha1.Window{spec("30 2 * * *", 2*time.Hour, "Australia/Sydney")}, "2030-10-06T03:00:00+11:00", "2030-10-06T04:30:00+11:00", "2030-10-07T02:30:00+11:00"},
		"a change by half an hour": {
			"2030-04-07T01:45:00+11:00", []v1alpha1.Window{spec("45 1 * * *", time.Hour, "Australia/Lord_Howe")}, "2030-04-07T01:45:00+11:00", "2030-04-07T02:45:00+10:30", "2030-04-08T01:45:00+10:30"},

		"weekdays only": {"2030-06-01T23:00:00+02:00", []v1alpha1.Window{spec("0 22 * * 1-5", 6*time.Hour, berlin)}, "", "", "2030-06-03T22:00:00+02:00"},
		"Friday's window ends on Saturday": {
			"2030-06-01T03:00:00+02:00", []v1alpha1.Window{spec("0 22 * * 1-5", 6*time.Hour, berlin)}, "2030-05-31T22:00:00+02:00", "2030-06-01T04:00:00+02:00", "2030-06-03T22:00:00+02:00"},
		"seven is Sunday":          {"2030-06-01T12:00:00Z", []v1alpha1.Window{spec("0 22 * * 7", time.Hour, "")}, "", "", "2030-06-02T22:00:00Z"},
		"a range that ends there":  {"2030-06-01T23:00:00Z", []v1alpha1.Window{spec("0 22 * * 6-7", time.Hour, "")}, "", "", "2030-06-02T22:00:00Z"},
		"a range over the weekend": {"2030-06-01T23:00:00Z", []v1alpha1.Window{spec("0 22 * * Fri-Mon/2", time.Hour, "")}, "", "", "2030-06-02T22:00:00Z"},
		"by name":                  {"2030-06-02T23:00:00Z", []v1alpha1.Window{spec("0 22 * jun sat", time.Hour, "")}, "", "", "2030-06-08T22:00:00Z"},
		"once in four years":       {"2030-06-02T23:00:00Z", []v1alpha1.Window{spec("0 22 29 2 *", time.Hour, "")}, "", "", "2032-02-29T22:00:00Z"},

		"windows that overlap are one": {
			"2030-06-03T23:00:00Z", []v1alpha1.Window{spec("0 22 * * *", 3*time.Hour, ""), spec("0 0 * * *", 4*time.Hour, "")}, "2030-06-03T22:00:00Z", "2030-06-04T04:00:00Z", "2030-06-04T22:00:00Z"},
		"and those that touch": {
			"2030-06-03T23:00:00Z", []v1alpha1.Window{spec("0 22 * * *", 2*time.Hour, ""), spec("0 0 * * *", 4*time.Hour, "")}, "2030-06-03T22:00:00Z", "2030-06-04T04:00:00Z", "2030-06-04T22:00:00Z"},
		"with a gap the other one is next": {
			"2030-06-03T23:00:00Z", []v1alpha1.Window{spec("0 22 * * *", 2*time.Hour, ""), spec("0 2 * * *", 2*time.Hour, "")}, "2030-06-03T22:00:00Z", "2030-06-04T00:00:00Z", "2030-06-04T02:00:00Z"},
		"each in its own zone": {
			"2030-06-03T12:00:00Z", []v1alpha1.Window{night, spec("0 22 * * *", 6*time.Hour, "America/New_York")}, "", "", "2030-06-03T22:00:00+02:00"},
	} {
		t.Run(name, func(t *testing.T) {
			st := state(t, tc.now, tc.in...)
			require.Equal(t, tc.opened != "", st.Open)
			if st.Open {
				assert.True(t, st.Opened.Equal(moment(t, tc.opened)), st.Opened)
				assert.True(t, st.Closes.Equal(moment(t, tc.closes)), st.Closes)
			}
			assert.True(t, st.Next.Equal(moment(t, tc.next)), st.Next)
		})
	}
}

func TestTheNextOpeningIsToldInTheZoneOfItsWindow(t *testing.T) {
	st := state(t, "2030-06-03T12:00:00Z", spec("0 22 * * *", time.Hour, berlin))
	assert.Equal(t, "2030-06-03T22:00:00+02:00", st.Next.Format(time.RFC3339))
	assert.Equal(t, berlin, st.Next.Location().String())
}

func TestTheLongestWindowIsTheLongestTimeWithoutAGap(t *testing.T) {
	weekend := spec("0 18 * * 6", 30*time.Hour, "")
	assert.Equal(t, 30*time.Hour, state(t, "2030-06-03T12:00:00Z", spec("0 22 * * 1-5", 6*time.Hour, ""), weekend).Longest)
	assert.Equal(t, 30*time.Hour, state(t, "2030-06-02T23:00:00Z", weekend).Longest, "the one that is open counts whole")
}

func TestAWindowThatOpensByTheMinuteIsLookedThroughInTime(t *testing.T) {
	st := state(t, "2030-06-03T12:00:30Z", spec("* * * * *", 168*time.Hour, ""), spec("* * * * *", time.Minute, berlin))
	require.True(t, st.Open)
	assert.Greater(t, st.Closes.Sub(moment(t, "2030-06-03T12:00:30Z")), 48*time.Hour)
}

func TestAWindowThatCannotBeReadSaysWhichAndWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		spec v1alpha1.Window
		says string
	}{
		"a zone that is not known":      {spec("0 22 * * *", time.Hour, "Europe/Atlantis"), `timeZone "Europe/Atlantis" is not known`},
		"the zone of the pod":           {spec("0 22 * * *", time.Hour, "Local"), "coordinator's pod"},
		"a path":                        {spec("0 22 * * *", time.Hour, "../etc/passwd"), "is not known"},
		"a day that never comes":        {spec("0 22 30 2 *", time.Hour, ""), "never comes"},
		"a step of nothing":             {spec("*/0 22 * * *", time.Hour, ""), "step"},
		"a step of nothing in weekdays": {spec("0 22 * * 1-5/0", time.Hour, ""), "step"},
		"a month that is none":          {spec("0 22 * foo *", time.Hour, ""), "foo"},
		"a weekday that is none":        {spec("0 22 * * foo", time.Hour, ""), "foo"},
		"six fields":                    {spec("0 0 22 * * *", time.Hour, ""), "6 fields"},
		"a zone of its own":             {spec("TZ=UTC 0 22 * *", time.Hour, ""), "TZ=UTC"},
		"no duration":                   {spec("0 22 * * *", 0, ""), "duration"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := window.Parse([]v1alpha1.Window{spec("0 22 * * *", time.Hour, ""), tc.spec})
			require.Error(t, err)
			assert.Contains(t, err.Error(), "windows[1]: ")
			assert.Contains(t, err.Error(), tc.says)
		})
	}
}
