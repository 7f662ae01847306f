package bench_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/mcpwire"
)

// measureUnchangedList measures fetching a list again that is the same, where the
// digest of the bytes that came decides and nothing is parsed.
func measureUnchangedList(t testing.TB, e effort) []row {
	p := newPeer(t, kindStub)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	session, err := mcpwire.Connect(t.Context(), mcpwire.Options{URL: p.origin + "/private", Client: client}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	first, err := session.ListTools(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	again := func() {
		listing, err := session.ListTools(context.Background(), "", first.GetEtag())
		if err != nil || !listing.GetUnchanged() || len(listing.GetTools()) > 0 {
			t.Fatalf("%v, %v", listing.GetUnchanged(), err)
		}
	}
	size, err := sizeOf(client, p.origin+"/private")
	if err != nil {
		t.Fatal(err)
	}
	// A new client each time, because the bare one keeps the list for its time to live.
	parse := func() { newBare(t, p.origin+"/private") }
	elapsed := func(work func()) func() float64 {
		return func() float64 { began := time.Now(); work(); return time.Since(began).Seconds() }
	}
	us, them := e.alternate(elapsed(again), elapsed(parse))
	bytes := allocated(again)
	bare := allocated(parse)
	return []row{
		// Its buffer is all that a list may cost which is not parsed.
		atMost("bytes allocated by fetching an unchanged list again, by its size", bytes/float64(size), 2.5, times).
			with("%.1f MB of %.1f MB, bare's first fetch %.1f MB", bytes/1e6, float64(size)/1e6, bare/1e6),
		atMost("its time, by that of the bare client's first fetch, which parses", us/them, 0.5, times).
			with("%.1f ms, bare %.1f ms", us*1e3, them*1e3),
	}
}

// sizeOf is how many bytes a server sends for its list.
func sizeOf(client *http.Client, url string) (int64, error) {
	response, err := client.Post(url, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}
