package bench_test

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/mcpwire"
)

// digest is where the compared work leaves what it did.
var digest [sha256.Size]byte

// measureUnchangedList compares fetching a list again that is the same with reading
// and digesting its bytes and nothing more.
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
	size := 0
	raw := func() {
		response, err := client.Post(p.origin+"/private", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		size = len(body)
		digest = sha256.Sum256(body)
	}
	raw()
	elapsed := func(work func()) func() float64 {
		return func() float64 { began := time.Now(); work(); return time.Since(began).Seconds() }
	}
	us, them := e.alternate(elapsed(again), elapsed(raw))
	bytes := allocated(again)
	bare := allocated(func() { newBare(t, p.origin+"/private") })
	return []row{
		// Its buffer is all that a list may cost which is not parsed.
		atMost("bytes allocated by fetching an unchanged list again, by its size", bytes/float64(size), 2.5, times).
			with("%.1f MB of %.1f MB, bare, whose cache is empty, %.1f MB", bytes/1e6, float64(size)/1e6, bare/1e6),
		// A parse is many times that.
		atMost("its time, by that of reading and digesting the same bytes: no parse", us/them, 1.5, times).
			with("%.1f ms, %.1f ms", us*1e3, them*1e3),
	}
}
