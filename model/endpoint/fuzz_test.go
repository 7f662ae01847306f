package endpoint

import (
	"net/http"
	"testing"
)

// The fields of a refusal that ask for patience never ask for less than none.
func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "1", "-1", "1e999", "NaN", "0x1p5", "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 0000 23:59:59 GMT", "1.5", "inf"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, seconds, ms string) {
		header := http.Header{"Retry-After": {seconds}, "Retry-After-Ms": {ms}}
		response := &http.Response{StatusCode: http.StatusTooManyRequests, Header: header, Body: http.NoBody}
		if failed := refusalOf(response); failed.After < 0 || failed.Passing && failed.After > longestWait {
			t.Fatalf("%q, %q: %+v", seconds, ms, failed)
		}
	})
}
