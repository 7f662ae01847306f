package endpoint

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	firstPause   = 500 * time.Millisecond
	longestPause = 8 * time.Second
	// longestWait is how long a wish to be left alone is honoured. An endpoint
	// that wishes for more is not asked again.
	longestWait = 60 * time.Second
)

// pauseBefore is how long to wait after an attempt, the first being 1: any time
// up to a ceiling that doubles (full jitter), on top of what the endpoint asked for.
func pauseBefore(attempt int, first, after time.Duration) time.Duration {
	ceiling := first
	for range attempt - 1 {
		ceiling = min(2*ceiling, longestPause)
	}
	return after + rand.N(ceiling+1)
}

// wait reports whether ctx lasted.
func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// retryAfter reads how long an endpoint asks to be left alone (RFC 9110 section
// 10.2.3, and the form in milliseconds that some add); 0 when it does not.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if pause, ok := number(header.Get("Retry-After-Ms"), time.Millisecond); ok {
		return pause
	}
	value := header.Get("Retry-After")
	if pause, ok := number(value, time.Second); ok {
		return pause
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// number reads a count of units, at most a year of them.
func number(value string, unit time.Duration) (time.Duration, bool) {
	count, err := strconv.ParseFloat(value, 64)
	if math.IsInf(count, 1) {
		err = nil // too large for the type, and so simply large
	}
	if err != nil || math.IsNaN(count) || count < 0 {
		return 0, false
	}
	const year = 365 * 24 * time.Hour
	return time.Duration(min(count*float64(unit), float64(year))), true
}
