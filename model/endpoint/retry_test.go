package endpoint

import (
	"net/http"
	"testing"
	"time"
)

func TestPauses(t *testing.T) {
	for attempt := 1; attempt < 70; attempt++ {
		for range 20 {
			pause := pauseBefore(attempt, firstPause, time.Second)
			if ceiling := min(firstPause<<min(attempt-1, 10), longestPause); pause < time.Second || pause > time.Second+ceiling {
				t.Fatalf("the pause after attempt %d is %s", attempt, pause)
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "2": 2 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "soon": 0, "NaN": 0, "1e999": 365 * 24 * time.Hour,
		"Sun, 01 Mar 2026 12:00:07 GMT": 7 * time.Second, "Sun, 01 Mar 2026 11:00:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q asks for %s, want %s", value, got, want)
		}
	}
	both := http.Header{"Retry-After": {"2"}, "Retry-After-Ms": {"1500"}}
	if got := retryAfter(both, now); got != 1500*time.Millisecond {
		t.Errorf("both ask for %s", got)
	}
}
