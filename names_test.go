package psych_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
)

// oddNames are names that servers give their tools: legal for them and not for a
// model's endpoint, alike in one respect or another, or those of something else.
var oddNames = []string{
	"calendar.create", "calendar_create", "calendar-create", "calendar create", "calendar/create", "search-a", "search_a", "Search_a", "SEARCH_A",
	"a/b", "Get File", "größe", "gro\u0308ße", "🔎", "工具", "", " ", ".", "_", "__", "__proto__", "constructor", "toString",
	strings.Repeat("x", 54), strings.Repeat("x", 59), strings.Repeat("x", 60), strings.Repeat("x", 65), strings.Repeat("x", 128),
	strings.Repeat("y", 127) + "a", strings.Repeat("y", 127) + "b", strings.Repeat("z", 5000),
	"list_tools", "get_tool_info", "call_tool", "crm__find", "two\nlines", "tab\tbed", "null\x00byte", `quo"ted`, "=?base64?eA==?=", "a\\b",
}

// Whatever a server calls its tools, the endpoint takes every name, each call
// reaches its own tool under the name that the server gave it, and no server
// renames another's.
func TestEveryNameReachesItsOwnTool(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tools []mcptest.Tool
			for _, one := range oddNames {
				tools = append(tools, tool(one, func(c mcptest.Call) mcptest.Result { return mcptest.Text(fmt.Sprintf("%q", c.Tool)) }))
			}
			first := mcptest.NewServer(t, append(era, mcptest.Tools(tools...))...)
			second := mcptest.NewServer(t, append(era, mcptest.Tools(tools...))...)
			endpoint := mcptest.NewModel(t)
			endpoint.AnswerWith(func(request mcptest.ModelRequest) mcptest.ModelAnswer {
				if len(request.Messages) > 2 {
					return mcptest.Say("done")
				}
				var calls []mcptest.ModelCall
				for i, one := range request.Tools {
					calls = append(calls, mcptest.ModelCall{ID: fmt.Sprint("c", i), Name: one.Name, Arguments: `{}`})
				}
				return mcptest.Ask(calls...)
			})
			runtime := start(t, psych.Options{
				Model: psych.OpenAI(endpoint.URL(), nil), MCP: &psych.MCP{BudgetChars: 1 << 20}, RootCAs: mcptest.RootCAs(),
			})
			one, other := at(first), at(second)
			other.Name = "my.crm-2"
			alone, both := runAgent(t, runtime, agent(t, nil, one)), runAgent(t, runtime, agent(t, nil, other, one))
			for _, got := range []told{alone, both} {
				reached := map[string]int{}
				for _, outcome := range got.finished {
					if outcome.Outcome != journal.OutcomeOK {
						t.Errorf("the call of %s ended %+v", outcome.Name, outcome.Error)
					}
					reached[outcome.Result]++
				}
				for _, name := range oddNames {
					if reached[fmt.Sprintf("%q", name)]*len(oddNames) != len(got.finished) {
						t.Errorf("%.20q was reached %d times", name, reached[fmt.Sprintf("%q", name)])
					}
				}
			}
			for _, row := range alone.turns[0].Tools {
				if !slices.Contains(both.turns[0].Tools, row) {
					t.Errorf("another server renamed %+v", row)
				}
			}
			if len(both.turns[0].Tools) != 2*len(oddNames) {
				t.Errorf("%d tools were offered", len(both.turns[0].Tools))
			}
		})
	}
}

// Two tools of one server with one name fail the Run, whatever else differs, and
// a name that differs at all does not.
func TestOneNameTwiceIsToldAndNearlyOneNameIsNot(t *testing.T) {
	twice := func(schema string) mcptest.Tool { return mcptest.Tool{Name: "search", InputSchema: schema} }
	for name, test := range map[string]struct {
		tools     []mcptest.Tool
		conflicts bool
	}{
		"the same twice":      {[]mcptest.Tool{twice(""), twice("")}, true},
		"different schemas":   {[]mcptest.Tool{twice(`{"type":"object"}`), twice(`{"type":"object","required":["a"]}`)}, true},
		"on different pages":  {[]mcptest.Tool{twice(""), tool("between", nil), tool("more", nil), twice("")}, true},
		"another case":        {[]mcptest.Tool{twice(""), {Name: "Search"}}, false},
		"another character":   {[]mcptest.Tool{{Name: "a.b"}, {Name: "a_b"}, {Name: "a-b"}}, false},
		"beyond the cut":      {[]mcptest.Tool{{Name: strings.Repeat("x", 100) + "1"}, {Name: strings.Repeat("x", 100) + "2"}}, false},
		"a built-in's name":   {[]mcptest.Tool{{Name: "call_tool"}, {Name: "list_tools"}}, false},
		"what a digest makes": {[]mcptest.Tool{{Name: "a.b"}, {Name: "a_b_0000000000"}}, false},
	} {
		server := mcptest.NewServer(t, mcptest.PageSize(2), mcptest.Tools(test.tools...))
		runtime := start(t, psych.Options{MCP: &psych.MCP{}, Model: psych.UseModel(play(say("done")))})
		got := runAgent(t, runtime, agent(t, nil, at(server)))
		if conflict := got.end.Error != nil && got.end.Error.Kind == failure.KindNameConflict; conflict != test.conflicts {
			t.Errorf("%s: the Run ended %+v", name, got.end)
		}
		if test.conflicts && strings.Count(got.end.Error.Message, `"search" of server "crm"`) != 2 {
			t.Errorf("%s: %q does not name both", name, got.end.Error.Message)
		}
	}
}

// What an endpoint sends as a call and nobody can dispatch is answered by itself:
// the endpoint is given a result for each call that it made, good calls run, and
// nothing of a large mistake is repeated to it.
func TestACallThatTheEndpointGarblesIsAnsweredByItself(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", func(c mcptest.Call) mcptest.Result { return mcptest.Text("found " + string(c.Arguments)) })))
	chunk := func(calls ...string) mcptest.ModelAnswer {
		return mcptest.ModelEvents(`data: {"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[` + strings.Join(calls, ",") + `]}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n")
	}
	garbage := strings.Repeat("x", 2<<20)
	wants := []struct {
		function string // the raw function member
		outcome  journal.Outcome
		kind     failure.Kind
		says     string
	}{
		{`{"name":"crm__find","arguments":"{\"q\":\"x\"}"}`, journal.OutcomeOK, "", `found {"q":"x"}`},
		{`{"name":"crm__find","arguments":{"q":"x"}}`, journal.OutcomeOK, "", `found {"q":"x"}`},
		{`{"name":"crm__find","arguments":""}`, journal.OutcomeOK, "", "found {}"},
		{`{"name":"crm__find"}`, journal.OutcomeOK, "", "found {}"},
		{`{"name":"crm__find","arguments":null}`, journal.OutcomeOK, "", "found {}"},
		{`{"name":"crm__find","arguments":"{\"a\":1,"}`, journal.OutcomeRefused, failure.KindInvalidArguments, "not JSON"},
		{`{"name":"crm__find","arguments":"null"}`, journal.OutcomeRefused, failure.KindInvalidArguments, "must be a JSON object"},
		{`{"name":"crm__find","arguments":"[]"}`, journal.OutcomeRefused, failure.KindInvalidArguments, "must be a JSON object"},
		{`{"name":"crm__find","arguments":"\"x\""}`, journal.OutcomeRefused, failure.KindInvalidArguments, "must be a JSON object"},
		{`{"name":"crm__find","arguments":"7"}`, journal.OutcomeRefused, failure.KindInvalidArguments, "must be a JSON object"},
		{`{"name":"crm__find","arguments":"{\"a\":1}{\"a\":2}"}`, journal.OutcomeRefused, failure.KindInvalidArguments, "something follows"},
		{`{"name":"crm__find","arguments":"` + garbage + `"}`, journal.OutcomeRefused, failure.KindInvalidArguments, "2097152 bytes and 1048576 are allowed"},
		{`{"name":"crm__find","arguments":"` + garbage[:1<<19] + `"}`, journal.OutcomeRefused, failure.KindInvalidArguments, "not JSON"},
		{`{"name":"crm__find","arguments":"{\"q\":7}"}`, journal.OutcomeRefused, failure.KindInvalidArguments, "do not fit"},
		{`{"name":"crm__fnid","arguments":"{}"}`, journal.OutcomeRefused, failure.KindUnknownTool, "close names are crm__find"},
		{`{"name":"find","arguments":"{}"}`, journal.OutcomeRefused, failure.KindUnknownTool, "does not exist"},
		{`{"name":"` + garbage[:100_000] + `","arguments":"{}"}`, journal.OutcomeRefused, failure.KindUnknownTool, "does not exist"},
		{`{"name":"__proto__","arguments":"{}"}`, journal.OutcomeRefused, failure.KindUnknownTool, "does not exist"},
		{`{"name":"call_tool","arguments":"{}"}`, journal.OutcomeRefused, failure.KindUnknownTool, "does not exist"},
	}
	var calls []string
	for i, want := range wants {
		calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"c%d","type":"function","function":%s}`, i, i, want.function))
	}
	endpoint := mcptest.NewModel(t, chunk(calls...), mcptest.Say("done"))
	runtime := start(t, psych.Options{Model: psych.OpenAI(endpoint.URL(), nil), MCP: &psych.MCP{}})
	got := runAgent(t, runtime, agent(t, nil, at(server)))
	if got.end.State != journal.StateCompleted {
		t.Fatalf("the Run ended %+v %v", got.end, got.end.Error)
	}
	for i, want := range wants {
		outcome, kind := got.finished[fmt.Sprint("c", i)], failure.Kind("")
		if outcome.Error != nil {
			kind = outcome.Error.Kind
		}
		if outcome.Outcome != want.outcome || kind != want.kind || !strings.Contains(outcome.Result, want.says) || len(outcome.Result) > 600 {
			t.Errorf("%.100s: ended %s, %s, %.300q; want %s, %s, %q", want.function, outcome.Outcome, kind, outcome.Result, want.outcome, want.kind, want.says)
		}
	}
	if asked := endpoint.Requests(); len(asked) != 2 || len(asked[1].Messages) != 2+1+len(wants) {
		t.Errorf("the endpoint was asked %d times", len(asked))
	}
}

// A tool that the server has taken away since the model was asked is the server's
// to refuse, and its sibling runs.
func TestAToolThatWasTakenAwayMeanwhileIsRefusedByItself(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.NewServer(t, append(era, mcptest.Tools(tool("stays", nil), tool("goes", nil)))...)
			port := play(ask(call("a", "crm__goes", `{}`), call("b", "crm__stays", `{}`)), ask(call("c", "crm__goes", `{}`)), say("done"))
			runtime := start(t, psych.Options{MCP: &psych.MCP{CatalogueTTL: time.Hour}, Model: psych.UseModel(port), RootCAs: mcptest.RootCAs()})
			port.before = func(turn int) {
				if turn == 0 {
					server.WaitStreams(1)
					server.SetTools(tool("stays", nil))
					lists := len(server.Requests("tools/list"))
					server.NotifyToolsChanged()
					server.WaitFor("tools/list", lists+1)
				}
			}
			got := runAgent(t, runtime, agent(t, nil, at(server)))
			a, b, c := got.finished["a"], got.finished["b"], got.finished["c"]
			if a.Outcome != journal.OutcomeError || a.Error.Kind != failure.KindMcpProtocolError || b.Outcome != journal.OutcomeOK {
				t.Errorf("in the turn that offered it the calls ended %+v, %+v", a, b)
			}
			if c.Outcome != journal.OutcomeRefused || c.Error.Kind != failure.KindUnknownTool || got.end.State != journal.StateCompleted {
				t.Errorf("in the next turn the call ended %+v and the Run %+v", c, got.end)
			}
		})
	}
}

// Whatever a result holds, the model reads a text: nothing of it is lost without a
// word, no bytes are written out as text, and no link in it is followed.
func TestWhatTheModelReadsOfAResult(t *testing.T) {
	linked := mcptest.NewHost(t, nil)
	link := `{"type":"resource_link","uri":"` + linked.URL() + `/secret","name":"x","mimeType":"image/png"}`
	large := strings.Repeat("QUJD", 10_000)
	for name, test := range map[string]struct {
		result  string
		outcome journal.Outcome
		says    []string
	}{
		"structured alone":     {`{"content":[],"structuredContent":{"a":[0,false,null]}}`, journal.OutcomeOK, []string{`{"a":[0,false,null]}`}},
		"no content at all":    {`{"structuredContent":0}`, journal.OutcomeOK, []string{"0"}},
		"null content":         {`{"content":null,"structuredContent":false}`, journal.OutcomeOK, []string{"false"}},
		"an error in details":  {`{"isError":true,"content":[],"structuredContent":{"code":"E7"}}`, journal.OutcomeError, []string{"E7"}},
		"an error of nothing":  {`{"isError":true}`, journal.OutcomeError, []string{"without saying what went wrong"}},
		"a picture":            {`{"content":[{"type":"image","data":"` + large + `","mimeType":"image/png"}]}`, journal.OutcomeOK, []string{"image/png", "30000 bytes"}},
		"sound and a picture":  {`{"content":[{"type":"audio","data":"` + large + `","mimeType":"audio/wav"},{"type":"image","data":"","mimeType":"image/PNG; x=y"}]}`, journal.OutcomeOK, []string{"audio/wav", "0 bytes"}},
		"a document":           {`{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"application/pdf","blob":"` + large + `"}}]}`, journal.OutcomeOK, []string{"application/pdf", "file:///a"}},
		"links":                {`{"content":[` + link + `,{"type":"resource_link","uri":"file:///etc/passwd","name":"p"}]}`, journal.OutcomeOK, []string{"/secret", "file:///etc/passwd"}},
		"blocks that are none": {`{"content":[null,7,{"type":"resource","resource":null},{"type":"text"},{"type":"text","text":"after"}]}`, journal.OutcomeOK, []string{"after"}},
		"a thousand blocks":    {`{"content":[` + strings.Repeat(link+",", 1000) + `{"type":"text","text":"the end"}]}`, journal.OutcomeOK, []string{"/secret", "the end"}},
	} {
		server := mcptest.NewServer(t, mcptest.Tools(tool("look", func(mcptest.Call) mcptest.Result { return mcptest.Raw(test.result) })))
		port := play(ask(call("a", "crm__look", `{}`)), say("done"))
		runtime := start(t, psych.Options{MCP: &psych.MCP{}, Model: psych.UseModel(port)})
		got := runAgent(t, runtime, agent(t, nil, at(server)))
		<-port.requests
		history := (<-port.requests).Messages
		read := history[len(history)-1].Text
		if got.finished["a"].Outcome != test.outcome || got.end.State != journal.StateCompleted {
			t.Errorf("%s: the call ended %s and the Run %+v", name, got.finished["a"].Outcome, got.end)
		}
		for _, part := range test.says {
			if !strings.Contains(read, part) {
				t.Errorf("%s: the model reads %.300q, and not %q", name, read, part)
			}
		}
		if strings.Contains(read, "QUJDQUJD") || strings.TrimSpace(read) == "" {
			t.Errorf("%s: the model reads %.300q", name, read)
		}
	}
	if n := len(linked.Requests()); n != 0 {
		t.Errorf("links were followed %d times", n)
	}
}

// A connection, and what is cached with it, belongs to one tenant, principal,
// server and credential; how a URL is spelt makes no other server, and what a
// server says of its lists joins nobody.
func TestWhoSharesAConnection(t *testing.T) {
	bob := messages.Scope{Tenant: "acme", Principal: "bob"}
	globex := messages.Scope{Tenant: "globex", Principal: "ann"}
	type side struct {
		scope      messages.Scope
		credential string
		path       string
	}
	one := side{acme, "key", "/mcp"}
	for name, test := range map[string]struct {
		other  side
		shares bool
	}{
		"the same":                          {one, true},
		"another tenant, the same token":    {side{globex, "key", "/mcp"}, false},
		"another principal, the same token": {side{bob, "key", "/mcp"}, false},
		"another token":                     {side{acme, "key2", "/mcp"}, false},
		"no token":                          {side{acme, "", "/mcp"}, false},
		"the same token by another name":    {side{acme, "alias", "/mcp"}, true},
		"an encoded path":                   {side{acme, "key", "/%6dcp"}, true},
		"a slash more":                      {side{acme, "key", "/mcp/"}, false},
		"another query":                     {side{acme, "key", "/mcp?a=1"}, false},
		"a path in capitals":                {side{acme, "key", "/MCP"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := mcptest.NewServer(t, mcptest.Tools(tool("find", nil)), mcptest.Cache(time.Hour, "public"))
			held := map[string]string{"key": "t1", "alias": "t1", "key2": "t2"}
			runtime := start(t, psych.Options{MCP: &psych.MCP{Secrets: secrets{"acme": held, "globex": held}}})
			for _, who := range []side{one, test.other} {
				target := psych.ProbeTarget{URL: strings.ToUpper(server.Origin()[:4]) + server.Origin()[4:] + who.path, Credential: who.credential}
				if _, err := runtime.Probe(t.Context(), who.scope, target); err != nil {
					t.Fatal(err)
				}
			}
			connections, err := runtime.Connections(t.Context(), "")
			want := map[bool]int{true: 1, false: 2}[test.shares]
			if err != nil || len(connections) != want {
				t.Errorf("there are %d connections (%v)", len(connections), err)
			}
			if asked := len(server.Requests("server/discover")); asked != want {
				t.Errorf("the server was connected to %d times", asked)
			}
			gone, err := runtime.Disconnect(t.Context(), one.scope, "")
			if err != nil || gone < 1 {
				t.Errorf("%d were disconnected (%v)", gone, err)
			}
			if test.other.scope.Tenant != "acme" {
				if left, err := runtime.Connections(t.Context(), test.other.scope.Tenant); err != nil || len(left) != 1 {
					t.Errorf("the other tenant has %d connections left (%v)", len(left), err)
				}
			}
		})
	}
}

// What no address of a server may be is refused before anything is dialled, however
// it is spelt; what is no address to the resolver either is not found.
func TestAnInternalAddressIsRefusedHoweverItIsSpelt(t *testing.T) {
	runtime, err := psych.New(psych.Options{MCP: &psych.MCP{ConnectTimeout: 5 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runtime.Close(t.Context()) })
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::]", "0.0.0.0", "0", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.",
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "[fd00:ec2::254]", "[fe80::1]", "[fd00::1]", "100.64.0.1",
		"[::ffff:10.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::a00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "224.0.0.1", "255.255.255.255",
	} {
		_, err := runtime.Probe(t.Context(), acme, psych.ProbeTarget{URL: "https://" + host + ":8443/mcp"})
		kind, odd := failure.KindOf(err), slices.Contains([]string{"0", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1."}, host)
		if kind != failure.KindEgressDenied && (!odd || kind != failure.KindMcpServerUnreachable) {
			t.Errorf("%s: %s: %v", host, kind, err)
		}
	}
}
