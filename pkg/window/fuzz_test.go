package window_test

import (
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/window"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func FuzzWindowsThatCanBeReadHoldTogether(f *testing.F) {
	f.Add("0 22 * * 1-5", "Europe/Berlin", int64(360), int64(1900000000))
	f.Add("30 2 * * 7", "Australia/Lord_Howe", int64(90), int64(1901000000))
	f.Add("*/15 * 1,15 feb Fri-Mon/2", "", int64(10080), int64(1950000000))
	f.Add("0 0 29 2 *", "Pacific/Apia", int64(1), int64(1325000000))
	f.Add("TZ=x", "Local", int64(-1), int64(0))
	f.Fuzz(func(t *testing.T, schedule, zone string, minutes, unix int64) {
		s, err := window.Parse([]v1alpha1.Window{{Schedule: schedule, TimeZone: zone, Duration: metav1.Duration{Duration: time.Duration(minutes%10080) * time.Minute}}})
		if err != nil {
			return
		}
		now := time.Unix(unix%4102444800, 0) // to the year 2100
		st := s.At(now)
		if st.Open && (st.Opened.After(now) || !st.Closes.After(now) || st.Closes.Sub(st.Opened) > st.Longest) {
			t.Errorf("open from %s to %s (longest %s) at %s", st.Opened, st.Closes, st.Longest, now)
		}
		if !st.Next.IsZero() && (!st.Next.After(now) || (st.Open && !st.Next.After(st.Closes))) {
			t.Errorf("next opens at %s, asked at %s, closes at %s", st.Next, now, st.Closes)
		}
		if st.Next.IsZero() {
			return
		}
		if at := s.At(st.Next); !at.Open {
			t.Errorf("closed at its own opening %s", st.Next)
		}
	})
}
