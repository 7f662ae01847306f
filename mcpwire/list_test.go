package mcpwire_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
)

func list(t *testing.T, s *mcpwire.Session, etag string) *messages.Listing {
	t.Helper()
	l, err := s.ListTools(t.Context(), "", etag)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func names(l *messages.Listing) string {
	var all []string
	for _, tool := range l.GetTools() {
		all = append(all, tool.GetName())
	}
	return strings.Join(all, " ")
}

// lists answers with the pages in order, cut into the tools arrays given.
func lists(hints string, pages ...string) behaviour {
	return func(w http.ResponseWriter, r *request) {
		n := 0
		_, _ = fmt.Sscanf(r.Params.Cursor, "page %d", &n)
		next := ""
		if n+1 < len(pages) {
			next = fmt.Sprintf(`,"nextCursor":"page %d"`, n+1)
		}
		answer(w, r, `{"tools":`+pages[n]+next+hints+`}`)
	}
}

const object = `"inputSchema":{"type":"object"}`

func TestAListIsFollowedToItsEnd(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		p := newPeer(t, version)
		p.does("tools/list", lists("", `[{"name":"a",`+object+`}]`, `[]`, `[{"name":"b",`+object+`},{"name":"c",`+object+`}]`))
		s := connect(t, p)
		if l := list(t, s, ""); names(l) != "a b c" || l.Etag == "" || l.TtlMs != nil || l.CacheScope != "" {
			t.Errorf("%s: %v", version, l)
		}
	}
}

// A list that moves between two pages shows a tool in both, and is fetched again. A
// server that stays with it, or that names a tool twice in one page, means it.
func TestAListThatMovesBetweenItsPages(t *testing.T) {
	a, b, c := `{"name":"a",`+object+`}`, `{"name":"b",`+object+`}`, `{"name":"c",`+object+`}`
	moved := lists("", `[`+a+`,`+b+`]`, `[`+b+`,`+c+`]`)
	for name, test := range map[string]struct {
		moves   int // fetches under which it moves
		still   behaviour
		want    string
		fetches int
	}{
		"never":          {0, lists("", `[`+a+`,`+b+`]`, `[`+c+`]`), "a b c", 1},
		"once":           {1, lists("", `[`+a+`,`+b+`]`, `[`+c+`]`), "a b c", 2},
		"twice":          {2, lists("", `[`+a+`,`+b+`]`, `[`+c+`]`), "a b c", 3},
		"always":         {9, nil, "a b b c", 3},
		"in one page":    {0, lists("", `[`+a+`,`+b+`,`+b+`]`, `[`+c+`]`), "a b b c", 1},
		"in other words": {0, lists("", `[`+a+`,`+b+`]`, `[{"description":"another",`+b[1:]+`]`), "a b b", 1},
	} {
		for _, version := range []string{modern, legacy} {
			p := newPeer(t, version)
			begun := 0
			p.does("tools/list", func(w http.ResponseWriter, r *request) {
				if r.Params.Cursor == "" {
					begun++
				}
				if begun <= test.moves {
					moved(w, r)
					return
				}
				test.still(w, r)
			})
			if l := list(t, connect(t, p), ""); names(l) != test.want || begun != test.fetches {
				t.Errorf("%s, %s: listed are %s after %d fetches", name, version, names(l), begun)
			}
		}
	}
}

func TestAListWithoutAnEnd(t *testing.T) {
	for name, next := range map[string]func(n int) string{
		"a circle":       func(n int) string { return fmt.Sprint(n % 3) },
		"always further": func(n int) string { return fmt.Sprint(n) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, modern)
			n := 0
			p.does("tools/list", func(w http.ResponseWriter, r *request) {
				n++
				answer(w, r, `{"tools":[],"nextCursor":"`+next(n)+`"}`)
			})
			if _, err := connect(t, p).ListTools(t.Context(), "", ""); failure.KindOf(err) != failure.KindMcpProtocolError {
				t.Error(err)
			}
		})
	}
}

func TestAnUnchangedListIsNotSentOn(t *testing.T) {
	p := newPeer(t, modern)
	p.does("tools/list", lists(`,"ttlMs":5,"cacheScope":"public"`, `[{"name":"a",`+object+`}]`, `[{"name":"b",`+object+`}]`))
	s := connect(t, p)
	first := list(t, s, "")
	p.does("tools/list", lists(`,"ttlMs":7,"cacheScope":"private","_meta":{"x":1}`, `[{"name":"a",`+object+`}]`, `[{"name":"b",`+object+`}]`))
	again := list(t, s, first.Etag)
	if !again.Unchanged || len(again.Tools) != 0 || again.Etag != first.Etag || again.GetTtlMs() != 7 || again.CacheScope != "private" {
		t.Errorf("%v", again)
	}
	p.does("tools/list", lists("", `[{"name":"a",`+object+`}]`))
	if changed := list(t, s, first.Etag); changed.Unchanged || names(changed) != "a" || changed.Etag == first.Etag {
		t.Errorf("%v", changed)
	}
}

func TestHintsOfPagesAreJoined(t *testing.T) {
	for _, c := range []struct {
		hints []string
		ttl   int64
		scope string
	}{
		{[]string{`,"ttlMs":100,"cacheScope":"public"`, `,"ttlMs":50,"cacheScope":"public"`}, 50, "public"},
		{[]string{`,"ttlMs":100,"cacheScope":"public"`, `,"cacheScope":"private"`}, 100, "private"},
		{[]string{`,"cacheScope":"private"`, `,"cacheScope":"public"`}, -1, "private"},
		{[]string{`,"cacheScope":"public"`, ``}, -1, ""},
		{[]string{``, `,"cacheScope":"public"`}, -1, ""},
		{[]string{`,"ttlMs":-5`, ``}, 0, ""},
		{[]string{`,"ttlMs":"100","cacheScope":7`, ``}, -1, ""},
		{[]string{`,"ttlMs":1.5`, ``}, 1, ""},
		{[]string{`,"ttlMs":2e3`, ``}, 2000, ""},
		{[]string{`,"ttlMs":99999999999999999999`, ``}, 1 << 50, ""},
		{[]string{`,"ttlMs":1e400`, ``}, 1 << 50, ""},
		{[]string{`,"ttlMs":null`, `,"ttlMs":true`}, -1, ""},
		{[]string{`,"ttlMs":[5]`, `,"ttlMs":7`}, 7, ""},
	} {
		p := newPeer(t, modern)
		p.does("tools/list", func(w http.ResponseWriter, r *request) {
			if r.Params.Cursor == "" {
				answer(w, r, `{"tools":[],"nextCursor":"2"`+c.hints[0]+`}`)
				return
			}
			answer(w, r, `{"tools":[]`+c.hints[1]+`}`)
		})
		l := list(t, connect(t, p), "")
		if l.CacheScope != c.scope || (l.TtlMs == nil) != (c.ttl < 0) || l.TtlMs != nil && l.GetTtlMs() != c.ttl {
			t.Errorf("%q: %v", c.hints, l)
		}
	}
}

// One odd tool costs only itself, and the log says which.
func TestAnOddToolCostsOnlyItself(t *testing.T) {
	for name, odd := range map[string]string{
		"null":              `null`,
		"a number":          `5`,
		"no name":           `{` + object + `}`,
		"a name of numbers": `{"name":5,` + object + `}`,
		"no schema":         `{"name":"odd"}`,
		"schema null":       `{"name":"odd","inputSchema":null}`,
		"schema a list":     `{"name":"odd","inputSchema":[]}`,
		"description":       `{"name":"odd","description":{},` + object + `}`,
		"header annotation": `{"name":"odd","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, modern)
			p.does("tools/list", lists("", `[{"name":"a",`+object+`},`+odd+`,{"name":"b",`+object+`}]`))
			core, log := observer.New(zap.WarnLevel)
			s := connect(t, p, func(o *mcpwire.Options) { o.Logger = zap.New(core) })
			if l := list(t, s, ""); names(l) != "a b" {
				t.Errorf("%v", l)
			}
			if log.Len() != 1 || strings.Contains(odd, `"odd"`) && log.All()[0].ContextMap()["tool"] != "odd" {
				t.Errorf("%+v", log.All())
			}
		})
	}
}

func TestAListThatIsNone(t *testing.T) {
	for name, result := range map[string]string{
		"not a list": `{"tools":{}}`, "not JSON": `{"tools":[tru]}`, "cut": `{"tools":[{"name":"a"]`, "a text": `"x"`,
		"an odd cursor": `{"tools":[],"nextCursor":{}}`,
	} {
		p := newPeer(t, modern)
		p.does("tools/list", func(w http.ResponseWriter, r *request) { answer(w, r, result) })
		if _, err := connect(t, p).ListTools(t.Context(), "", ""); failure.KindOf(err) != failure.KindMcpProtocolError {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, result := range map[string]string{"absent": `{}`, "null": `{"tools":null}`, "an empty cursor": `{"tools":[],"nextCursor":""}`} {
		p := newPeer(t, modern)
		p.does("tools/list", func(w http.ResponseWriter, r *request) { answer(w, r, result) })
		if l := list(t, connect(t, p), ""); len(l.Tools) != 0 || l.Etag == "" {
			t.Errorf("%s: %v", name, l)
		}
	}
}

func TestAServerWithoutToolsHasNone(t *testing.T) {
	p := newPeer(t, modern)
	p.does("server/discover", func(w http.ResponseWriter, r *request) {
		answer(w, r, `{"supportedVersions":["2026-07-28"],"capabilities":{}}`)
	})
	p.does("tools/list", raw(404, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"x"}}`))
	if l := list(t, connect(t, p), ""); len(l.Tools) != 0 {
		t.Error(l)
	}
}

// The pages of a listing share one ceiling.
func TestAListIsBoundedAsAWhole(t *testing.T) {
	page := `[{"name":"a","description":"` + strings.Repeat("x", ceiling/3) + `",` + object + `}]`
	p := newPeer(t, modern)
	p.does("tools/list", lists("", page, page, page, page))
	s := connect(t, p, func(o *mcpwire.Options) { o.MaxResponseBytes = func() int64 { return ceiling } })
	_, err := s.ListTools(t.Context(), "", "")
	if failure.KindOf(err) != failure.KindMcpResponseTooLarge || !strings.Contains(err.Error(), fmt.Sprint(ceiling)) {
		t.Error(err)
	}
}

func TestToolsAreReadAsTheyAre(t *testing.T) {
	schema := `{ "type" : "object",  "properties":{"größe":{"type":"string"}} }`
	p := newPeer(t, legacy)
	p.does("tools/list", lists("", `[
		{"name":"caf\u00e9 \"x\"","title":"t","description":"d\n\ud83d\ude00","inputSchema":`+schema+`,"outputSchema":{"type":"object"}},
		{"name":"","inputSchema":{}},
		{"name":"__proto__","inputSchema":{},"annotations":{"readOnlyHint":true}},
		{"name":"same","inputSchema":{"a":1},"annotations":{"destructiveHint":false,"idempotentHint":true}},
		{"name":"same","inputSchema":{"a":2},"annotations":{}},
		{"name":"odd hints","inputSchema":{},"annotations":{"readOnlyHint":"true","destructiveHint":0}},
		{"name":"no hints","inputSchema":{},"annotations":null},
		{"name":"hints are no object","inputSchema":{},"annotations":["x"]}]`))
	l := list(t, connect(t, p), "")
	want := []struct {
		name, class string
		idempotent  bool
	}{
		{`café "x"`, "write", false}, {"", "write", false}, {"__proto__", "read-only", true}, {"same", "write", true},
		{"same", "destructive", false}, {"odd hints", "destructive", false}, {"no hints", "write", false},
		{"hints are no object", "destructive", false},
	}
	if len(l.Tools) != len(want) {
		t.Fatalf("%v", l)
	}
	for i, tool := range l.Tools {
		if tool.Name != want[i].name || tool.Class != want[i].class || tool.Idempotent != want[i].idempotent {
			t.Errorf("%v, want %v", tool, want[i])
		}
	}
	first := l.Tools[0]
	if !bytes.Equal(first.InputSchema, []byte(schema)) || first.Description != "d\n😀" {
		t.Errorf("%s, %q", first.InputSchema, first.Description)
	}
	if wantChars := int64(len([]rune(first.Name)) + len([]rune(first.Description)) + len([]rune(schema))); first.Chars != wantChars {
		t.Errorf("%d characters, want %d", first.Chars, wantChars)
	}
}

// TestPublicListsShareTheirMemory has two sessions list what is, or is not, the
// same list.
func TestPublicListsShareTheirMemory(t *testing.T) {
	one, other := `[{"name":"a",`+object+`}]`, `[{"name":"b",`+object+`}]`
	const public, private = `,"cacheScope":"public"`, `,"cacheScope":"private"`
	for name, c := range map[string]struct {
		versions [2]string
		lists    [2]behaviour
		shared   bool
	}{
		"both public":       {[2]string{modern, modern}, [2]behaviour{lists(public, one), lists(public, one)}, true},
		"both in pages":     {[2]string{modern, modern}, [2]behaviour{lists(public, one, other), lists(public, one, other)}, true},
		"both private":      {[2]string{modern, modern}, [2]behaviour{lists(private, one), lists(private, one)}, false},
		"one private":       {[2]string{modern, modern}, [2]behaviour{lists(public, one), lists(private, one)}, false},
		"nothing said":      {[2]string{modern, modern}, [2]behaviour{lists("", one), lists("", one)}, false},
		"other tools":       {[2]string{modern, modern}, [2]behaviour{lists(public, one), lists(public, other)}, false},
		"another revision":  {[2]string{modern, legacy}, [2]behaviour{lists(public, one), lists(public, one)}, false},
		"a spelling apart":  {[2]string{modern, modern}, [2]behaviour{lists(public, one), lists(public, strings.Replace(one, ",", ", ", 1))}, false},
		"no known scope":    {[2]string{modern, modern}, [2]behaviour{lists(`,"cacheScope":"PUBLIC"`, one), lists(`,"cacheScope":"PUBLIC"`, one)}, false},
		"private in a page": {[2]string{modern, modern}, [2]behaviour{mixed(one, other), mixed(one, other)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var shared mcpwire.ToolLists
			var first [2]*messages.Tool
			for i := range first {
				p := newPeer(t, c.versions[i])
				p.does("tools/list", c.lists[i])
				s := connect(t, p, func(o *mcpwire.Options) { o.Lists = &shared })
				first[i] = list(t, s, "").GetTools()[0]
			}
			if (first[0] == first[1]) != c.shared {
				t.Errorf("the lists share their memory: %v", first[0] == first[1])
			}
		})
	}
}

// mixed is a list of two pages, the second of which is private.
func mixed(first, second string) behaviour {
	return func(w http.ResponseWriter, r *request) {
		if r.Params.Cursor == "" {
			answer(w, r, `{"tools":`+first+`,"nextCursor":"2","cacheScope":"public"}`)
			return
		}
		answer(w, r, `{"tools":`+second+`,"cacheScope":"private"}`)
	}
}
