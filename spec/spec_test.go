package spec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/spec"
)

const whole = `
name: support
instructions: |
  Help the customer.
  Be kind.
model: {model: gpt-5}
mcp_servers:
  - name: github
    url: https://mcp.example.com/github
    credential: github-token
    allow: [search_issues, "list_*"]
  - name: records
    url: https://mcp.example.com/records
    oauth:
      preregistered_client_id: psych-service
      client_secret_credential: records-oauth-secret
      issuer: https://auth.example.com
tools: [lookup_order]
`

// written is whole with every default written out, other orders, and CRLF.
const written = "tools:\r\n  - lookup_order\r\n" + `
limits: {deadline: 600s, max_turns: 32}
mcp_servers:
  - url: https://mcp.example.com/github
    name: github
    transport: http
    credential: github-token
    allow: ["list_*", search_issues, "list_*"]
    optional: false
    preload: null
    session: shared
  - name: records
    optional: false
    allow: []
    oauth:
      grant: client_credentials
      client_secret_credential: records-oauth-secret
      preregistered_client_id: psych-service
      issuer: https://auth.example.com
      scopes: []
      token_endpoint_auth_method: null
      private_key_credential: null
      cimd_url: ""
      allow_dynamic_registration: true
      application_type: native
      client_name: psych
      redirect_uris: []
    url: https://mcp.example.com/records
model:
  model: gpt-5
` + "instructions: \"Help the customer.\\r\\nBe kind.\\r\\n\"\r\nname: support\r\n"

func parse(t testing.TB, text string) spec.Version {
	t.Helper()
	version, err := spec.Parse("spec.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func TestDefaultsAreWrittenOutForReaders(t *testing.T) {
	got := parse(t, whole).Spec()
	github, records := got.MCPServers[0], got.MCPServers[1]
	if github.Transport != messages.TransportHTTP || github.Session != spec.SessionShared || github.Preload != nil ||
		!slices.Equal(github.Allow, []string{"list_*", "search_issues"}) ||
		got.Limits != (spec.Limits{MaxTurns: 32, Deadline: 10 * time.Minute}) ||
		records.OAuth.Grant != spec.GrantClientCredentials || !*records.OAuth.AllowDynamicRegistration {
		t.Errorf("got %+v", got)
	}
	if !github.Grant().Permits("list_users") || github.Grant().Permits("drop") || !records.Grant().Permits("drop") {
		t.Error("grants are not those that allow gives")
	}
}

func TestTheVersionStandsStill(t *testing.T) {
	// A change of this value renames every Spec of every user.
	const want = "e6f0ce344cfa5385dfc824b6ded3214107f309b7af97b5260fa57eef582c4a44"
	if got := parse(t, whole).Hash(); got != want {
		t.Errorf("the version is %s, was %s; canonical form: %s", got, want, parse(t, whole).Canonical())
	}
}

func TestWrittenOutDefaultsOrderAndLineEndsDoNotCount(t *testing.T) {
	if a, b := parse(t, whole), parse(t, written); a.Hash() != b.Hash() {
		t.Errorf("canonical forms differ:\n%s\n%s", a.Canonical(), b.Canonical())
	}
}

func TestACallerCannotChangeAVersion(t *testing.T) {
	version := parse(t, whole)
	got := version.Spec()
	got.MCPServers[0].Allow[0], got.MCPServers[0].Name, got.Tools[0] = "x", "x", "x"
	*got.MCPServers[1].OAuth.AllowDynamicRegistration = false
	version.Canonical()[0] = 'x'
	again, err := spec.New(version.Spec())
	if err != nil || again.Hash() != version.Hash() {
		t.Errorf("the version changed: %v", err)
	}
}

// tree is a Spec as JSON, which is YAML too.
func tree(t *rapid.T) map[string]any {
	var servers []any
	for i := range rapid.IntRange(0, 3).Draw(t, "servers") {
		server := map[string]any{"name": fmt.Sprint("s", i), "url": fmt.Sprint("https://example.com/", i)}
		if rapid.Bool().Draw(t, "allowed") {
			server["allow"] = rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,4}\*?`), 1, 4).Draw(t, "allow")
		}
		if rapid.Bool().Draw(t, "optional") {
			server["optional"] = true
		}
		if rapid.Bool().Draw(t, "preloading") {
			server["preload"] = rapid.Bool().Draw(t, "preload")
		}
		servers = append(servers, server)
	}
	return map[string]any{
		"name": "s", "model": map[string]any{"model": "m"}, "mcp_servers": servers,
		"instructions": rapid.StringMatching(`[a-z \n]{0,20}`).Draw(t, "instructions"),
		"limits":       map[string]any{"max_turns": rapid.IntRange(1, 1000).Draw(t, "turns")},
	}
}

// shuffled writes a tree with its keys, and the patterns of allow, in another
// order.
func shuffled(value any, seed *rand.Rand, key string) string {
	switch value := value.(type) {
	case map[string]any:
		var members []string
		for name, member := range value {
			members = append(members, fmt.Sprintf("%q: %s", name, shuffled(member, seed, name)))
		}
		slices.Sort(members)
		seed.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return "{" + strings.Join(members, ",\r\n ") + "}"
	case []string:
		mixed := slices.Clone(value)
		if key == "allow" {
			seed.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		}
		encoded, _ := json.Marshal(mixed)
		return string(encoded)
	case []any:
		var items []string
		for _, item := range value {
			items = append(items, shuffled(item, seed, ""))
		}
		return "[" + strings.Join(items, ",") + "]"
	default:
		encoded, _ := json.Marshal(value)
		return string(encoded)
	}
}

func TestTheHashFollowsWhatCountsAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := tree(t)
		seed := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		a, err := spec.Parse("a", []byte(shuffled(one, seed, "")))
		if err != nil {
			t.Fatal(err)
		}
		b, err := spec.Parse("b", []byte(shuffled(one, seed, "")))
		if err != nil || a.Hash() != b.Hash() {
			t.Fatalf("%v: %s and %s", err, a.Canonical(), b.Canonical())
		}
		c, err := spec.New(a.Spec())
		if err != nil || c.Hash() != a.Hash() {
			t.Fatalf("written-out defaults count: %v", err)
		}
		changed := a.Spec()
		switch change := rapid.IntRange(0, 4).Draw(t, "change"); {
		case change == 0:
			changed.Name += "x"
		case change == 1:
			changed.Instructions += "x"
		case change == 2:
			changed.Limits.MaxTurns = changed.Limits.MaxTurns%1000 + 1
		case change == 3:
			changed.Tools = append(changed.Tools, "t")
		case len(changed.MCPServers) == 0:
			changed.Model.Model += "x"
		case change == 4:
			changed.MCPServers[0].Allow = append(changed.MCPServers[0].Allow, "other")
		}
		d, err := spec.New(changed)
		if err != nil || d.Hash() == a.Hash() {
			t.Fatalf("a change does not count: %v\n%s\n%s", err, a.Canonical(), d.Canonical())
		}
	})
}

func TestWhatIsRefusedAndWhere(t *testing.T) {
	server := func(fields string) string {
		return "name: s\nmodel: {model: m}\nmcp_servers:\n  - name: a\n    url: https://example.com/\n" + fields
	}
	oauth := func(fields string) string { return server("    oauth:\n" + fields) }
	for _, test := range []struct{ text, want string }{
		{"model: {model: m}", `spec.yaml:1: the name "" must match`},
		{"name: 1a\nmodel: {model: m}", `spec.yaml:1: the name "1a" must match`},
		{"name: s", "spec.yaml:1: the Spec must name a model"},
		{"name: s\nmodel: {model: m}\ncolor: red", `spec.yaml:3: the document has no field "color"`},
		{"name: s\nmodel: {model: m}\nlimits: {max_turns: 0}", "spec.yaml:3: a limit that is written out must be more than 0"},
		{"name: s\nmodel: {model: m}\nlimits: {max_turns: 1001}", "spec.yaml:3: max_turns must be from 1 to 1000"},
		{"name: s\nmodel: {model: m}\nlimits:\n  deadline: 0s", "spec.yaml:4: a limit that is written out must be more than 0"},
		{"name: s\nmodel: {model: m}\nlimits:\n  deadline: -1s", "spec.yaml:4: the deadline must be longer than 0"},
		{server("    transport: stdio\n"), "spec.yaml:6: stdio is no transport here: "},
		{server("    transport: ws\n"), `spec.yaml:6: the transport "ws" is neither http nor sse`},
		{server("    credential: Bearer x\n"), "spec.yaml:6: the credential must be a name"},
		{server("    allow: [a, \"*b\"]\n"), `spec.yaml:6: the pattern "*b" must be a tool's name`},
		{server("    session: none\n"), `spec.yaml:6: the session "none" is neither shared nor run`},
		{server("  - name: a\n    url: https://example.com/b\n"), `spec.yaml:6: the server alias "a" stands twice`},
		{server("  - name: a__b\n    url: https://example.com/b\n"), `spec.yaml:6: the server alias "a__b" must not have "__" in it`},
		{server("  - name: a_\n    url: https://example.com/b\n"), `spec.yaml:6: the server alias "a_" must not end in "_"`},
		{server("  - name: b\n    url: ftp://example.com/\n"), "spec.yaml:7: the server URL must begin with http:// or https://"},
		{server("  - name: b\n    url: https://u:p@example.com/\n"), "spec.yaml:7: the server URL must not hold a user name or password"},
		{server("  - name: b\n    url: https://example.com/#x\n"), "spec.yaml:7: the server URL must not have a fragment"},
		{server("tools: [a__find]\n"), `spec.yaml:6: the host tool "a__find" wears the prefix of the server "a"`},
		{server("tools: [ok, ok]\n"), `spec.yaml:6: the host tool "ok" stands twice`},
		{server("tools: [call_tool]\n"), `spec.yaml:6: the host tool "call_tool" has the name of a built-in tool`},
		{server("tools: [\"a b\"]\n"), `spec.yaml:6: the host tool "a b" must have 1 to 64 characters`},
		{oauth("      grant: password\n"), `spec.yaml:7: the grant "password" is neither`},
		{oauth("      token_endpoint_auth_method: mtls\n"), `spec.yaml:7: the method "mtls" is none of`},
		{oauth("      token_endpoint_auth_method: private_key_jwt\n"), "spec.yaml:7: private_key_jwt needs private_key_credential"},
		{oauth("      token_endpoint_auth_method: none\n"), "spec.yaml:7: client_credentials needs a client that authenticates itself"},
		{oauth("      preregistered_client_id: c\n"), "spec.yaml:7: a preregistered client needs the issuer"},
		{oauth("      issuer: http://auth.example.com\n"), "spec.yaml:7: the issuer must be an https URL"},
		{oauth("      client_secret_credential: x\n"), "spec.yaml:7: a client secret needs preregistered_client_id"},
		{oauth("      scopes: [\"a b\"]\n"), `spec.yaml:7: the scope "a b" is no single scope token`},
		{oauth("      redirect_uris: [\"/cb\"]\n"), `spec.yaml:7: the redirect URI "/cb" must be an absolute URI`},
		{server("    credential: c\n    oauth: {}\n"), "spec.yaml:6: a server has either a credential or oauth"},
	} {
		_, err := spec.Parse("spec.yaml", []byte(test.text))
		if failure.KindOf(err) != failure.KindSpecInvalid || !strings.HasPrefix(fmt.Sprint(err), test.want) {
			t.Errorf("%q:\ngot  %v\nwant %s", test.text, err, test.want)
		}
	}
}

func TestAProgramIsToldTheFieldInsteadOfTheLine(t *testing.T) {
	_, err := spec.New(spec.Spec{Name: "s", Model: spec.Model{Model: "m"}, MCPServers: []spec.Server{{Name: "a", URL: "x"}}})
	if want := "mcp_servers[0].url: the server URL must begin with"; !strings.HasPrefix(fmt.Sprint(err), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(written))
	f.Add([]byte(`{"name":"s","model":{"model":"m"},"mcp_servers":[{"name":"a","url":"https://e/"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		version, err := spec.Parse("f", data)
		if err != nil {
			if failure.KindOf(err) != failure.KindSpecInvalid {
				t.Fatalf("got %v", err)
			}
			return
		}
		again, err := spec.New(version.Spec())
		if err != nil || again.Hash() != version.Hash() {
			t.Fatalf("the version does not stand: %v", err)
		}
	})
}
