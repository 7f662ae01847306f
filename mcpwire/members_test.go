package mcpwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestNestingHasALimit(t *testing.T) {
	for depth, fits := range map[int]bool{depthLimit - 1: true, depthLimit: true, depthLimit + 1: false, 1_000_000: false} {
		text := []byte(`{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`)
		if err := eachMember(text, func(_, _ []byte) {}); (err == nil) != fits {
			t.Errorf("%d levels: %v", depth, err)
		}
	}
}

func TestMembersAreTheOnesOfTheObject(t *testing.T) {
	var got []string
	err := eachMember([]byte(` {"a" : "x\"}" , "\u0062":{"a":[1,{}]},"c":-1.5e+3,"a":null } `), func(name, value []byte) {
		got = append(got, string(name)+"="+string(value))
	})
	if want := `a="x\"}" b={"a":[1,{}]} c=-1.5e+3 a=null`; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, broken := range []string{``, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1}x`, `{"a":1 "b":2}`, `[1]`, `{"a":"x}`, `{"a":"x\"}`, `{"a":[}`, `{a:1}`, `{"a":{}`} {
		if err := eachMember([]byte(broken), func(_, _ []byte) {}); err == nil {
			t.Errorf("%s was taken", broken)
		}
	}
	// The beginning of a number is another number: of a text that is cut off, what
	// may go on is not told.
	if err := eachMember([]byte(`{"a":1,"id":12`), func(name, _ []byte) {
		if string(name) == "id" {
			t.Error("a number was told that may go on")
		}
	}); err == nil {
		t.Error("a text that is cut off was taken")
	}
}

// On valid JSON the splitter sees what encoding/json sees; on anything else it
// neither fails badly nor returns what is outside the text.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a\n":["\\",{}],"b":"\""}`, `{"x":{"y":[null,true]}}`, `{"a":"b`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		split := make(map[string]json.RawMessage)
		err := eachMember(text, func(name, value []byte) {
			split[validText(name)] = bytes.Clone(value)
		})
		if !json.Valid(text) {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || want == nil {
			if err == nil {
				t.Fatalf("%q is no object", text)
			}
			return
		}
		if err != nil {
			if err == errTooDeep {
				return
			}
			t.Fatal(err)
		}
		for name, value := range want {
			if got := split[name]; !bytes.Equal(bytes.TrimSpace(got), bytes.TrimSpace(value)) {
				t.Fatalf("%q is %q, want %q", name, got, value)
			}
		}
	})
}

// Whatever a server answers to a request, it is a reply, a fault or nothing.
func FuzzInbound(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `[{"id":"1","error":{"code":-1,"message":"x"}}]`,
		`{"method":"ping","id":[]}`, `{"error":"x"}`, `{"id":1e400,"result":null}`,
	} {
		f.Add([]byte(seed))
	}
	w := &wire{}
	f.Fuzz(func(t *testing.T, text []byte) {
		x := &span{wire: w}
		found, err := x.find(text, 1, func(m *inbound) {
			if body := answerTo(m); m.request() && body != nil && !json.Valid(body) {
				t.Fatalf("our answer is not JSON: %s", body)
			}
		})
		if found.reply != nil && (found.fault != nil || len(found.reply.Result) == 0) {
			t.Fatalf("%+v, %v", found, err)
		}
	})
}

// Whatever a result holds, it becomes text or a fault, and base64 never shows.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"a"}],"structuredContent":0}`, `{"content":{"type":"resource","resource":{"blob":"AAAA"}}}`,
		`{"isError":true}`, `{"resultType":"input_required","inputRequests":{"a":null}}`, `{"content":[null,5,"x"]}`,
	} {
		f.Add([]byte(seed))
	}
	s := &Session{options: &Options{}, modern: true}
	f.Fuzz(func(t *testing.T, raw []byte) {
		result, err := s.readResult(raw)
		if (result == nil) == (err == nil) {
			t.Fatalf("%v, %v", result, err)
		}
		if err != nil && (len(err.Error()) > 8*longestServerText || strings.ContainsAny(err.Error(), "\r\n")) {
			t.Fatalf("a sentence of %d bytes: %.200q", len(err.Error()), err)
		}
		if err != nil {
			if _, ok := errors.AsType[*Fault](err); !ok {
				t.Fatalf("%T", err)
			}
		}
		if result != nil && result.GetIsError() && result.GetText() == "" {
			t.Fatal("an error without words")
		}
		if result != nil && len(result.GetStructured()) > 0 && !json.Valid(result.GetStructured()) {
			t.Fatalf("structured %q", result.GetStructured())
		}
	})
}

// Whatever a list holds, its tools have a name and a schema that is JSON.
func FuzzTools(f *testing.F) {
	for _, seed := range []string{
		`[{"name":"a","inputSchema":{"type":"object"}}]`, `[null,{"name":5}]`,
		`[{"name":"a","inputSchema":{"properties":{"b":{"type":"string","x-mcp-header":"B"}}}}]`,
	} {
		f.Add([]byte(seed))
	}
	s := &Session{options: &Options{Logger: zapNop()}, modern: true}
	f.Fuzz(func(t *testing.T, page []byte) {
		tools, fault := s.readTools("x", &listing{pages: [][]byte{page}})
		if fault != nil {
			return
		}
		for _, tool := range tools.tools {
			if !isObject(tool.GetInputSchema()) || tool.GetClass() == "" {
				t.Fatalf("%v", tool)
			}
		}
	})
}

func TestTheLastMembersOfWhatWasCutOff(t *testing.T) {
	for end, want := range map[string]string{
		`xx"},"jsonrpc":"2.0","id":5}`:            `id=5 jsonrpc="2.0"`,
		`xx" } , "jsonrpc" : "2.0" , "id" : 5 } `: `id=5 jsonrpc="2.0"`,
		`xx]},"id":"a\\\"b","jsonrpc":"2.0"}`:     `jsonrpc="2.0" id="a\\\"b"`,
		`xx,\"id\":5"}`:                           ``,
		`xx,\"id\":\"5\""}`:                       ``,
		`{"id":5}}`:                               ``,
		`"x":[1],"id":5}`:                         `id=5`,
		`23}`:                                     ``,
		`d":23}`:                                  ``,
		`"id":23`:                                 ``,
		`}`:                                       ``,
		``:                                        ``,
	} {
		var got []string
		eachLastMember([]byte(end), func(name, value []byte) { got = append(got, string(name)+"="+string(value)) })
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", end, got)
		}
	}
}
