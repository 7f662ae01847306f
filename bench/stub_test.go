package bench_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// slowness is how long the tool "slow" takes.
const slowness = 2 * time.Second

// stub is just enough of an MCP server of revision 2026-07-28 for its own cost to
// be small beside a client's. Its path says what it lists: /small, or /public and
// /private with a catalogue of 2 MB.
type stub struct {
	mu    sync.Mutex
	heard map[string]int // requests by method, "" for all, and calls of the slow tool by its name
	lists map[string]string
}

func newStub() *stub {
	small := `{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	large := small + catalogue(largeCatalogue-1)
	return &stub{heard: map[string]int{}, lists: map[string]string{
		"/small": listOf(small, "private"), "/public": listOf(large, "public"), "/private": listOf(large, "private"),
	}}
}

// largeCatalogue is how many tools the large catalogue has.
const largeCatalogue = 351

func listOf(tools, scope string) string {
	return `{"resultType":"complete","ttlMs":3600000,"cacheScope":"` + scope + `","tools":[` + tools + `]}`
}

// catalogue is n tools as they are generated from a description of an API, with
// schemas of some 6 kB each.
func catalogue(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `,{"name":"operation_%03d","description":"Operation %d of the service.","inputSchema":{"type":"object","properties":{`, i, i)
		for field := range 40 {
			if field > 0 {
				out.WriteByte(',')
			}
			fmt.Fprintf(&out, `"field_%02d":{"type":"string","description":"Field %d of operation %d, %s","maxLength":%d}`,
				field, field, i, strings.Repeat("as the service describes it ", 2), 100+field)
		}
		out.WriteString(`},"required":["field_00"]}}`)
	}
	return out.String()
}

// ServeHTTP implements [http.Handler]. GET /heard tells what was asked so far.
func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/heard" {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = json.NewEncoder(w).Encode(s.heard)
		return
	}
	var request struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.heard[request.Method]++
	s.heard[""]++
	s.mu.Unlock()
	switch request.Method {
	case "server/discover":
		s.answer(w, request.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)
	case "tools/list":
		s.answer(w, request.ID, s.lists[r.URL.Path])
	case "tools/call":
		s.call(w, r, request.ID, request.Params.Name)
	case "subscriptions/listen":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":`+
			`{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`+"\n\n", request.ID)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		http.Error(w, "no such method", http.StatusNotFound)
	}
}

func (s *stub) answer(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(id)+`,"result":`+result+`}`)
}

func (s *stub) call(w http.ResponseWriter, r *http.Request, id json.RawMessage, tool string) {
	if endless, known := floods[tool]; known {
		endless(w, r)
		return
	}
	if tool == "slow" {
		s.mu.Lock()
		s.heard[tool]++
		s.mu.Unlock()
		select {
		case <-time.After(slowness):
		case <-r.Context().Done():
		}
	}
	s.answer(w, id, `{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`)
}

// floods are the tools whose answers never end.
var floods = map[string]http.HandlerFunc{
	"endless text": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		flood(w, r)
	},
	"endless event": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: ")
		flood(w, r)
	},
	"endless events": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}`+"\n\n"); err != nil {
				return
			}
		}
	},
	"endless gzip": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		flood(gzip.NewWriter(w), r)
	},
	"endless error": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		flood(w, r)
	},
}

func flood(w io.Writer, r *http.Request) {
	blanks := []byte(strings.Repeat(" ", 64<<10))
	for r.Context().Err() == nil {
		if _, err := w.Write(blanks); err != nil {
			return
		}
	}
}

func floodNames() []string {
	var names []string
	for name := range maps.Keys(floods) {
		names = append(names, name)
	}
	return names
}
