package mcpwire_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
)

func TestResultsAreRendered(t *testing.T) {
	const silent = "The tool reported an error without saying what went wrong."
	cases := []struct {
		name, result, text, structured string
		isError                        bool
	}{
		{"text", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b\n"}]}`, "a\nb\n", "", false},
		{"text as it came", `{"content":[{"type":"text","text":"  \u0000 größe \ud83d\ude00 "}]}`, "  \x00 größe 😀 ", "", false},
		{"nothing", `{"content":[]}`, "", "", false},
		{"structured alone", `{"content":[],"structuredContent":{"a": [1, 2]}}`, `{"a": [1, 2]}`, `{"a": [1, 2]}`, false},
		{"content absent", `{"structuredContent":[1]}`, `[1]`, `[1]`, false},
		{"content null", `{"content":null,"structuredContent":"x"}`, `"x"`, `"x"`, false},
		{"structured 0", `{"structuredContent":0}`, `0`, `0`, false},
		{"structured false", `{"structuredContent":false}`, `false`, `false`, false},
		{"structured null", `{"structuredContent":null}`, `null`, `null`, false},
		{"both", `{"content":[{"type":"text","text":"a"}],"structuredContent":{"b":1}}`, "a", `{"b":1}`, false},
		{"an empty text and structured", `{"content":[{"type":"text","text":""}],"structuredContent":{"b":1}}`, `{"b":1}`, `{"b":1}`, false},
		{"an image and structured", `{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}],"structuredContent":{"b":1}}`, "[image, image/png, 3 bytes]\n{\"b\":1}", `{"b":1}`, false},
		{"an error", `{"isError":true,"content":[{"type":"text","text":"no"}]}`, "no", "", true},
		{"an error without words", `{"isError":true,"content":[]}`, silent, "", true},
		{"an error with details", `{"isError":true,"content":[],"structuredContent":{"code":7}}`, `{"code":7}`, `{"code":7}`, true},
		{"image", `{"content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/PNG; x=y"}]}`, "[image, image/PNG; x=y, 5 bytes]", "", false},
		{"an image of nothing", `{"content":[{"type":"image","data":"","mimeType":"image/png"}]}`, "[image, image/png, 0 bytes]", "", false},
		{"audio", `{"content":[{"type":"audio","data":"aGVsbG8h","mimeType":"audio/wav"}]}`, "[audio, audio/wav, 6 bytes]", "", false},
		{"a link", `{"content":[{"type":"resource_link","uri":"file:///etc/passwd","name":"x","mimeType":"text/plain"}]}`, "[link to a resource, text/plain, file:///etc/passwd]", "", false},
		{"an embedded text", `{"content":[{"type":"resource","resource":{"uri":"a:b","text":"inside"}}]}`, "inside", "", false},
		{"an embedded blob", `{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"application/pdf","blob":"aGVsbG8="}}]}`, "[embedded resource, application/pdf, 5 bytes, a:b]", "", false},
		{"an embedded blob of text", `{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"text/plain; charset=utf-8","blob":"aGVsbG8="}}]}`, "hello", "", false},
		{"an embedded blob that is no text", `{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"text/plain","blob":"//79"}}]}`, "[embedded resource, text/plain, 3 bytes, a:b]", "", false},
		{"an embedded null", `{"content":[{"type":"resource","resource":null}]}`, "[an embedded resource without content]", "", false},
		{"an embedded number", `{"content":[{"type":"resource","resource":5}]}`, "[an embedded resource that cannot be read]", "", false},
		{"null", `{"content":[null]}`, "[an empty content block]", "", false},
		{"null beside text", `{"content":[null,{"type":"text","text":"a"}]}`, "[an empty content block]\na", "", false},
		{"a number", `{"content":[5]}`, "[a content block that cannot be read, 1 bytes]", "", false},
		{"an unknown type", `{"content":[{"type":"video","data":"AAAA"}]}`, `[content of type "video", 30 bytes]`, "", false},
		{"a text without text", `{"content":[{"type":"text"}]}`, "[a text block without text]", "", false},
		{"one block for a list", `{"content":{"type":"text","text":"a"}}`, "a", "", false},
		{"a text for a list", `{"content":"a"}`, "a", "", false},
		{"a data URI", `{"content":[{"type":"resource_link","uri":"data:image/png;base64,AAAA"}]}`, "[link to a resource, data:image/png;base64]", "", false},
		{"names in many lines", `{"content":[{"type":"resource_link","uri":"a:\nb\u0000c"}]}`, "[link to a resource, a: b c]", "", false},
		{"complete", `{"resultType":"complete","content":[{"type":"text","text":"a"}]}`, "a", "", false},
	}
	for _, version := range []string{modern, legacy} {
		p := newPeer(t, version)
		s := connect(t, p)
		for _, c := range cases {
			t.Run(version+" "+c.name, func(t *testing.T) {
				p.does("x", func(w http.ResponseWriter, r *request) { answer(w, r, c.result) })
				result, err := s.CallTool(t.Context(), &messages.CallTool{Tool: "x"})
				if err != nil {
					t.Fatal(err)
				}
				if result.Text != c.text || string(result.Structured) != c.structured || result.IsError != c.isError {
					t.Errorf("%q, %q, error %v", result.Text, result.Structured, result.IsError)
				}
			})
		}
	}
}

func TestAnInterimResultSaysWhatIsWanted(t *testing.T) {
	for result, words := range map[string]string{
		`{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage"},"b":{"method":"elicitation/create"}}}`: "an answer to elicitation/create, sampling/createMessage",
		`{"resultType":"input_required","requestState":"x"}`:                                                                            "to be asked again later",
	} {
		p := newPeer(t, modern)
		p.does("x", func(w http.ResponseWriter, r *request) { answer(w, r, result) })
		_, err := call(t.Context(), connect(t, p), "x")
		if failure.KindOf(err) != failure.KindMcpInputRequiredError || !strings.Contains(err.Error(), words) {
			t.Error(err)
		}
	}
}

func TestAResultOfAnUnknownTypeIsNone(t *testing.T) {
	p := newPeer(t, modern)
	p.does("x", func(w http.ResponseWriter, r *request) { answer(w, r, `{"resultType":"task","content":[]}`) })
	if _, err := call(t.Context(), connect(t, p), "x"); failure.KindOf(err) != failure.KindMcpProtocolError {
		t.Error(err)
	}
}

func TestArgumentsLeaveAsTheyAre(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		p := newPeer(t, version)
		s := connect(t, p)
		for arguments, want := range map[string]string{``: `{}`, `{"a": 1.50, "b":"é"}`: `{"a": 1.50, "b":"é"}`} {
			if _, err := s.CallTool(t.Context(), &messages.CallTool{Tool: `n"a\me`, Arguments: []byte(arguments)}); err != nil {
				t.Fatal(err)
			}
			seen := p.seen(`n"a\me`)
			if got := string(seen[len(seen)-1].Params.Arguments); got != want {
				t.Errorf("%q arrived as %q", arguments, got)
			}
		}
		before := len(p.seen(""))
		for _, arguments := range []string{`{"a":1},"name":"other"`, `[]`, `null`, `{"a":`, `"x"`, ` `} {
			_, err := s.CallTool(t.Context(), &messages.CallTool{Tool: "echo", Arguments: []byte(arguments)})
			if failure.KindOf(err) != failure.KindInvalidArguments || maybeRan(err) {
				t.Errorf("%q: %v", arguments, err)
			}
		}
		if len(p.seen("")) != before {
			t.Error("something was sent")
		}
	}
}

// The headers of a call's arguments come from the raw tools of the last list,
// and from a fresh one when the server finds them at odds.
func TestArgumentsGoIntoHeaders(t *testing.T) {
	annotated := func(field string) string {
		return `[{"name":"sql","inputSchema":{"type":"object","properties":{
			"region":{"type":"string","x-mcp-header":"` + field + `"},
			"deep":{"type":"object","properties":{"count":{"type":"integer","x-mcp-header":"count"}}},
			"flag":{"type":"boolean","x-mcp-header":"Flag"},
			"missing":{"type":"string","x-mcp-header":"Missing"},"none":{"type":"string","x-mcp-header":"None"}}}},
			{"name":"plain",` + object + `}]`
	}
	arguments := []byte(`{"region":"Zürich","deep":{"count":42.0},"flag":false,"none":null}`)
	p := newPeer(t, modern)
	p.does("tools/list", lists("", annotated("Region")))
	s := connect(t, p)
	etag := list(t, s, "").Etag
	do := func(s *mcpwire.Session) http.Header {
		t.Helper()
		if _, err := s.CallTool(t.Context(), &messages.CallTool{Tool: "sql", Arguments: arguments}); err != nil {
			t.Fatal(err)
		}
		seen := p.seen("sql")
		return seen[len(seen)-1].Header
	}
	check := func(header http.Header, region string) {
		t.Helper()
		for field, want := range map[string]string{
			region: "=?base64?WsO8cmljaA==?=", "Mcp-Param-Count": "42", "Mcp-Param-Flag": "false",
			"Mcp-Param-Missing": "", "Mcp-Param-None": "",
		} {
			if header.Get(field) != want {
				t.Errorf("%s is %q, want %q", field, header.Get(field), want)
			}
		}
	}
	check(do(s), "Mcp-Param-Region")
	if list(t, s, etag); len(do(s)) == 0 {
		t.Fatal("no header at all")
	}
	check(do(s), "Mcp-Param-Region")
	// A session that was made anew learns the table although nothing changed.
	renewed := connect(t, p)
	if !list(t, renewed, etag).Unchanged {
		t.Fatal("changed")
	}
	check(do(renewed), "Mcp-Param-Region")

	p.does("tools/list", lists("", annotated("Place")))
	p.does("sql", func(w http.ResponseWriter, r *request) {
		if r.Header.Get("Mcp-Param-Place") == "" {
			raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":"Header mismatch"}}`)(w, r)
			return
		}
		answer(w, r, okResult)
	})
	before := len(p.seen("sql"))
	check(do(s), "Mcp-Param-Place")
	if n := len(p.seen("sql")) - before; n != 2 {
		t.Errorf("sent %d times", n)
	}
}
