package egress_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
)

const ceiling = 64 << 10

// answering serves a body of a size in one of several ways.
func answering(w http.ResponseWriter, r *http.Request) {
	size, _ := strconv.Atoi(r.URL.Query().Get("size"))
	status, _ := strconv.Atoi(r.URL.Query().Get("status"))
	body := bytes.Repeat([]byte("x"), size)
	if kind := r.URL.Query().Get("type"); kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	switch r.URL.Path {
	case "/length":
		w.Header().Set("Content-Length", strconv.Itoa(size))
		w.WriteHeader(max(status, 200))
		_, _ = w.Write(body)
	case "/gzip":
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(max(status, 200))
		zipper := gzip.NewWriter(w)
		_, _ = zipper.Write(body)
		_ = zipper.Close()
	default:
		w.WriteHeader(max(status, 200))
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(body)
	}
}

// expectTooLarge checks that an error is an answer beyond the ceiling, and says
// what was allowed.
func expectTooLarge(t *testing.T, err error, allowed int) {
	t.Helper()
	large, ok := errors.AsType[*failure.McpResponseTooLarge](err)
	if !ok || !strings.Contains(large.Error(), "more than the "+strconv.Itoa(allowed)+" bytes allowed") {
		t.Fatalf("not too large for %d: %v", allowed, err)
	}
}

func TestAnAnswerIsReadUpToTheCeiling(t *testing.T) {
	cleartext := serve(t, answering)
	secure := secureServer(t, answering)
	out := open(t, egress.Options{Policy: loopback, MaxResponseBytes: ceiling, RootCAs: authorityOf(secure)})
	for _, origin := range []string{cleartext.URL, secure.URL} {
		for _, path := range []string{"/length", "/chunked", "/gzip"} {
			for _, status := range []string{"200", "401", "500"} {
				t.Run(origin[:5]+path+status, func(t *testing.T) {
					target := origin + path + "?status=" + status + "&size="
					body, err := get(t, out.Client("acme"), target+strconv.Itoa(ceiling))
					if err != nil || len(body) != ceiling {
						t.Fatalf("exactly the ceiling: %d bytes, %v", len(body), err)
					}
					body, err = get(t, out.Client("acme"), target+strconv.Itoa(ceiling+1))
					expectTooLarge(t, err, ceiling)
					if len(body) > ceiling {
						t.Fatalf("%d bytes were read", len(body))
					}
				})
			}
		}
	}
}

// What came with the answer is known also where its body is refused: a 401 has
// its challenge, however much text stands beneath it.
func TestTheStatusOfAnOversizeAnswerIsKnown(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.Header().Set("Content-Length", strconv.Itoa(1<<40))
		w.WriteHeader(http.StatusUnauthorized)
	})
	out := open(t, egress.Options{Policy: loopback, MaxResponseBytes: ceiling})
	response, err := out.Client("").Get(server.URL)
	if err != nil || response.StatusCode != http.StatusUnauthorized || response.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Fatal(response, err)
	}
	for range 2 { // the failure stays
		n, err := response.Body.Read(make([]byte, 10))
		expectTooLarge(t, err, ceiling)
		if n != 0 {
			t.Fatalf("%d bytes were read", n)
		}
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

// An endless answer is given up, so that its server is told.
func TestTheRestOfAnOversizeAnswerIsNotRead(t *testing.T) {
	ended := make(chan struct{}, 1)
	endless := func(w http.ResponseWriter, _ *http.Request) {
		piece := bytes.Repeat([]byte("x"), 32<<10)
		for {
			if _, err := w.Write(piece); err != nil {
				break
			}
		}
		ended <- struct{}{}
	}
	cleartext, secure := serve(t, endless), secureServer(t, endless)
	out := open(t, egress.Options{Policy: loopback, MaxResponseBytes: ceiling, RootCAs: authorityOf(secure)})
	for _, origin := range []string{cleartext.URL, secure.URL} {
		response, err := out.Client("").Get(origin)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		expectTooLarge(t, err, ceiling)
		<-ended // before the body is closed by its reader
		_ = response.Body.Close()
	}
}

func TestAGzipBombIsCountedAsItUnfolds(t *testing.T) {
	var bomb bytes.Buffer
	zipper := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 2 {
		if _, err := zipper.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := zipper.Close(); err != nil {
		t.Fatal(err)
	}
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	out := open(t, egress.Options{Policy: loopback, MaxResponseBytes: ceiling})
	if bomb.Len() > ceiling {
		t.Fatal("the bomb is no bomb")
	}
	body, err := get(t, out.Client(""), server.URL)
	expectTooLarge(t, err, ceiling)
	if len(body) > ceiling {
		t.Fatalf("%d bytes were read", len(body))
	}
}

func TestACodingThatWasNotAskedForIsRefused(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Encoding"] = r.URL.Query()["coding"]
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "text")
	})
	out := open(t, egress.Options{Policy: loopback})
	for _, query := range []string{"coding=br", "coding=deflate", "coding=br&coding=gzip", "coding=gzip,+gzip"} {
		response, err := out.Client("").Get(server.URL + "?" + query)
		if err != nil || response.StatusCode != http.StatusUnauthorized {
			t.Fatal(query, err)
		}
		_, err = read(response, nil)
		if _, ok := errors.AsType[*failure.McpProtocolError](err); !ok {
			t.Errorf("%s: %v", query, err)
		}
	}
	if body, err := get(t, out.Client(""), server.URL+"?coding=identity"); err != nil || body != "text" {
		t.Error(body, err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"?coding=gzip", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip") // nothing would count what it unfolds to
	_, err = read(out.Client("").Do(request))
	if _, ok := errors.AsType[*failure.McpProtocolError](err); !ok {
		t.Error(err)
	}
}

func TestAHeadAnswerHasNoBodyToCount(t *testing.T) {
	secure := secureServer(t, answering)
	cleartext := serve(t, answering)
	out := open(t, egress.Options{Policy: loopback, MaxResponseBytes: ceiling, RootCAs: authorityOf(secure)})
	for _, origin := range []string{cleartext.URL, secure.URL} {
		response, err := out.Client("").Head(origin + "/length?size=" + strconv.Itoa(2*ceiling))
		if err != nil || response.ContentLength != 2*ceiling {
			t.Fatal(response, err)
		}
		if _, err := read(response, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnEventStreamIsLeftToWhoeverAskedForIt(t *testing.T) {
	const events = "text/event-stream"
	server := serve(t, answering)
	out := open(t, egress.Options{Policy: loopback, MaxResponseBytes: ceiling})
	model, err := out.ModelClient(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		client       *http.Client
		accept, kind string
		status       int
		allowed      int
	}{
		"asked for":                     {out.Client(""), "application/json, " + events, events, 200, 0},
		"asked for, with a parameter":   {out.Client(""), events, "Text/Event-Stream; charset=utf-8", 200, 0},
		"not asked for":                 {out.Client(""), "application/json", events, 200, ceiling},
		"asked for anything":            {out.Client(""), "*/*", events, 200, ceiling},
		"asked for, and something else": {out.Client(""), events, "application/json", 200, ceiling},
		"asked for, and refused":        {out.Client(""), events, events, 500, ceiling},
		"a model's":                     {model, "application/json", events, 200, 8 * ceiling},
		"a model's, refused":            {model, events, events, 429, ceiling},
		"a model's, not a stream":       {model, events, "application/json", 200, ceiling},
	} {
		t.Run(name, func(t *testing.T) {
			ask := func(size int) (string, error) {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/chunked?type="+
					url.QueryEscape(test.kind)+"&status="+strconv.Itoa(test.status)+"&size="+strconv.Itoa(size), nil)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Accept", test.accept)
				return read(test.client.Do(request))
			}
			if test.allowed == 0 {
				if body, err := ask(20 * ceiling); err != nil || len(body) != 20*ceiling {
					t.Fatalf("%d bytes, %v", len(body), err)
				}
				return
			}
			if body, err := ask(test.allowed); err != nil || len(body) != test.allowed {
				t.Fatalf("%d bytes, %v", len(body), err)
			}
			_, err := ask(test.allowed + 1)
			expectTooLarge(t, err, test.allowed)
		})
	}
}

func TestTheCeilingCanBeSet(t *testing.T) {
	server := serve(t, answering)
	out := open(t, egress.Options{Policy: loopback})
	client := out.Client("")
	if out.MaxResponseBytes() != egress.DefaultCeiling {
		t.Fatal(out.MaxResponseBytes())
	}
	target := server.URL + "/chunked?size=2048"
	if _, err := get(t, client, target); err != nil {
		t.Fatal(err)
	}
	if err := out.SetMaxResponseBytes(egress.MinCeiling); err != nil {
		t.Fatal(err)
	}
	_, err := get(t, client, target)
	expectTooLarge(t, err, egress.MinCeiling)
	for _, limit := range []int64{0, -1, egress.MinCeiling - 1, egress.MaxCeiling + 1} {
		if _, ok := errors.AsType[*failure.SpecInvalid](out.SetMaxResponseBytes(limit)); !ok || out.MaxResponseBytes() != egress.MinCeiling {
			t.Errorf("%d was taken", limit)
		}
	}
	if err := out.SetMaxResponseBytes(egress.MaxCeiling); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, client, target); err != nil {
		t.Fatal(err)
	}
}

func TestTheHeaderOfAnAnswerIsBounded(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Mcp-Session-Id", strings.Repeat("x", 1<<20))
	})
	out := open(t, egress.Options{Policy: loopback})
	if _, err := get(t, out.Client(""), server.URL); err == nil {
		t.Fatal("a header of 1 MiB was taken")
	}
}
