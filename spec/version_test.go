package spec_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
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
    oauth: null
  - name: records
    credential: null
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
      cimd_url: null
      allow_dynamic_registration: true
      application_type: native
      client_name: psych
      redirect_uris: []
    url: https://mcp.example.com/records
model:
  model: gpt-5
` + "instructions: \"Help the customer.\\r\\nBe kind.\\r\\n\"\r\nname: support\r\n"

// full is a Spec in which no field has its default.
func full() spec.Spec {
	return spec.Spec{
		Name: "support", Instructions: "Help.", Model: spec.Model{Model: "gpt-5"},
		MCPServers: []spec.Server{{
			Name: "records", URL: "https://mcp.example.com/records", Transport: messages.TransportSSE,
			Allow: []string{"a", "b_*"}, Optional: true, Preload: new(false), Session: spec.SessionRun,
			OAuth: &spec.OAuth{
				Grant: spec.GrantAuthorizationCode, PreregisteredClientID: "c", Issuer: "https://auth.example.com",
				Scopes: []string{"s", "t"}, TokenEndpointAuthMethod: new("private_key_jwt"), PrivateKeyCredential: new("k"),
				CIMDURL: "https://app.example.com/psych.json", AllowDynamicRegistration: new(false), ApplicationType: "web",
				ClientName: "Support", RedirectURIs: []string{"https://app.example.com/cb", "http://127.0.0.1/cb"},
			},
		}, {
			Name: "github", URL: "https://mcp.example.com/github", Credential: "github-token",
		}},
		Tools:  []string{"lookup_order", "other"},
		Limits: spec.Limits{MaxTurns: 3, Deadline: time.Minute},
	}
}

// changes holds one change for every field of a Spec, and some more.
var changes = map[string]func(*spec.Spec){
	"name":                           func(s *spec.Spec) { s.Name = "Support" },
	"instructions":                   func(s *spec.Spec) { s.Instructions += " " },
	"instructions, CR alone":         func(s *spec.Spec) { s.Instructions += "\r" },
	"instructions, LF at the end":    func(s *spec.Spec) { s.Instructions += "\n" },
	"model.model":                    func(s *spec.Spec) { s.Model.Model = "gpt-5.1" },
	"mcp_servers.name":               func(s *spec.Spec) { s.MCPServers[0].Name = "records2" },
	"mcp_servers.url":                func(s *spec.Spec) { s.MCPServers[0].URL += "/" },
	"mcp_servers.transport":          func(s *spec.Spec) { s.MCPServers[0].Transport = messages.TransportHTTP },
	"mcp_servers.credential":         func(s *spec.Spec) { s.MCPServers[1].Credential = "" },
	"mcp_servers.allow":              func(s *spec.Spec) { s.MCPServers[0].Allow = []string{"a"} },
	"mcp_servers.allow, none":        func(s *spec.Spec) { s.MCPServers[0].Allow = nil },
	"mcp_servers.optional":           func(s *spec.Spec) { s.MCPServers[0].Optional = false },
	"mcp_servers.preload":            func(s *spec.Spec) { s.MCPServers[0].Preload = new(true) },
	"mcp_servers.preload, by size":   func(s *spec.Spec) { s.MCPServers[0].Preload = nil },
	"mcp_servers.session":            func(s *spec.Spec) { s.MCPServers[0].Session = spec.SessionShared },
	"mcp_servers.oauth, none":        func(s *spec.Spec) { s.MCPServers[0].OAuth = nil },
	"mcp_servers.oauth, of defaults": func(s *spec.Spec) { s.MCPServers[0].OAuth = &spec.OAuth{} },
	"mcp_servers, one less":          func(s *spec.Spec) { s.MCPServers = s.MCPServers[:1] },
	"mcp_servers, other order":       func(s *spec.Spec) { slices.Reverse(s.MCPServers) },
	"tools":                          func(s *spec.Spec) { s.Tools = append(s.Tools, "third") },
	"tools, other order":             func(s *spec.Spec) { slices.Reverse(s.Tools) },
	"limits.max_turns":               func(s *spec.Spec) { s.Limits.MaxTurns = 32 },
	"limits.deadline":                func(s *spec.Spec) { s.Limits.Deadline++ },

	"mcp_servers.oauth.grant": func(s *spec.Spec) { s.MCPServers[0].OAuth.Grant = spec.GrantClientCredentials },
	"mcp_servers.oauth.preregistered_client_id": func(s *spec.Spec) {
		s.MCPServers[0].OAuth.PreregisteredClientID = ""
	},
	"mcp_servers.oauth.client_secret_credential": func(s *spec.Spec) {
		oauth := s.MCPServers[0].OAuth
		oauth.ClientSecretCredential, oauth.TokenEndpointAuthMethod = "s", nil
	},
	"mcp_servers.oauth.issuer":                     func(s *spec.Spec) { s.MCPServers[0].OAuth.Issuer += "/" },
	"mcp_servers.oauth.scopes":                     func(s *spec.Spec) { s.MCPServers[0].OAuth.Scopes = nil },
	"mcp_servers.oauth.scopes, other order":        func(s *spec.Spec) { slices.Reverse(s.MCPServers[0].OAuth.Scopes) },
	"mcp_servers.oauth.token_endpoint_auth_method": func(s *spec.Spec) { s.MCPServers[0].OAuth.TokenEndpointAuthMethod = nil },
	"mcp_servers.oauth.private_key_credential":     func(s *spec.Spec) { s.MCPServers[0].OAuth.PrivateKeyCredential = new("k2") },
	"mcp_servers.oauth.cimd_url":                   func(s *spec.Spec) { s.MCPServers[0].OAuth.CIMDURL = "" },
	"mcp_servers.oauth.allow_dynamic_registration": func(s *spec.Spec) { s.MCPServers[0].OAuth.AllowDynamicRegistration = nil },
	"mcp_servers.oauth.application_type":           func(s *spec.Spec) { s.MCPServers[0].OAuth.ApplicationType = "native" },
	"mcp_servers.oauth.client_name":                func(s *spec.Spec) { s.MCPServers[0].OAuth.ClientName = "psych" },
	"mcp_servers.oauth.redirect_uris":              func(s *spec.Spec) { s.MCPServers[0].OAuth.RedirectURIs = nil },
	"mcp_servers.oauth.redirect_uris, other order": func(s *spec.Spec) { slices.Reverse(s.MCPServers[0].OAuth.RedirectURIs) },
}

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
		!slices.Equal(github.Allow, []string{"list_*", "search_issues"}) || github.OAuth != nil ||
		got.Limits != (spec.Limits{MaxTurns: 32, Deadline: 10 * time.Minute}) ||
		records.OAuth.Grant != spec.GrantClientCredentials || !*records.OAuth.AllowDynamicRegistration ||
		records.OAuth.ApplicationType != "native" || records.OAuth.ClientName != "psych" {
		t.Errorf("got %+v", got)
	}
	if !github.Grant().Permits("list_users") || github.Grant().Permits("drop") || !records.Grant().Permits("drop") {
		t.Error("grants are not those that allow gives")
	}
}

func TestTheVersionStandsStill(t *testing.T) {
	// A change of these values renames the Specs of every user.
	for _, test := range []struct {
		version func() (spec.Version, error)
		want    string
	}{
		{func() (spec.Version, error) { return spec.Parse("f", []byte(whole)) }, "e6f0ce344cfa5385dfc824b6ded3214107f309b7af97b5260fa57eef582c4a44"},
		{func() (spec.Version, error) { return spec.New(full()) }, "171078360b0acc190078130b884337bc4ab451e61004b12ac9172f2b3806a149"},
		{func() (spec.Version, error) { return spec.Parse("f", []byte("{name: s, model: {model: m}}")) }, "7893af54f2af6e953ee2dadcae2d54dd4f1405b7c7698e6c741cf6b3ccd6eeed"},
	} {
		got, err := test.version()
		if err != nil || got.Hash() != test.want {
			t.Errorf("the Version is %s, was %s: %v; canonical form: %s", got.Hash(), test.want, err, got.Canonical())
		}
	}
}

func TestWrittenOutDefaultsOrderAndLineEndsDoNotCount(t *testing.T) {
	if a, b := parse(t, whole), parse(t, written); a.Hash() != b.Hash() {
		t.Errorf("canonical forms differ:\n%s\n%s", a.Canonical(), b.Canonical())
	}
	unix, dos := parse(t, whole), parse(t, strings.ReplaceAll(whole, "\n", "\r\n"))
	if unix.Hash() != dos.Hash() || strings.Contains(dos.Spec().Instructions, "\r") {
		t.Errorf("line ends count: %q", dos.Spec().Instructions)
	}
}

func TestTheCanonicalFormLeavesDefaultsOut(t *testing.T) {
	const want = `{"mcp_servers":[{"name":"a","oauth":{},"url":"https://example.com/"}],"model":{"model":"m"},"name":"s"}`
	got := parse(t, "name: s\nmodel: {model: m}\nmcp_servers: [{name: a, url: https://example.com/, oauth: {}}]")
	if string(got.Canonical()) != want {
		t.Errorf("got  %s\nwant %s", got.Canonical(), want)
	}
}

// fieldsOf lists the fields of a type that hold no fields of their own.
func fieldsOf(structure reflect.Type, path string, add func(string)) {
	for structure.Kind() == reflect.Slice || structure.Kind() == reflect.Pointer {
		structure = structure.Elem()
	}
	if structure.Kind() != reflect.Struct {
		add(path)
		return
	}
	for i := range structure.NumField() {
		fieldsOf(structure.Field(i).Type, strings.TrimPrefix(path+"."+structure.Field(i).Tag.Get("yaml"), "."), add)
	}
}

func TestEveryFieldCounts(t *testing.T) {
	fieldsOf(reflect.TypeFor[spec.Spec](), "", func(field string) {
		if changes[field] == nil {
			t.Errorf("no change of %s is tried", field)
		}
	})
	unchanged, err := spec.New(full())
	if err != nil {
		t.Fatal(err)
	}
	hashes := map[string]string{unchanged.Hash(): "no change"}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		changed := full()
		changes[name](&changed)
		version, err := spec.New(changed)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if same, twice := hashes[version.Hash()]; twice {
			t.Errorf("%s: the Version is that of %s: %s", name, same, version.Canonical())
		}
		hashes[version.Hash()] = name
	}
}

func TestACallerCannotChangeAVersion(t *testing.T) {
	mine := full()
	version, err := spec.New(mine)
	if err != nil {
		t.Fatal(err)
	}
	hash := version.Hash()
	for _, shared := range []spec.Spec{mine, version.Spec()} {
		shared.MCPServers[0].Allow[0], shared.MCPServers[1].Name, shared.Tools[0] = "x", "x", "x"
		*shared.MCPServers[0].Preload = true
		oauth := shared.MCPServers[0].OAuth
		oauth.Scopes[0], oauth.RedirectURIs[0], oauth.Issuer = "x", "x", "x"
		*oauth.AllowDynamicRegistration, *oauth.PrivateKeyCredential, *oauth.TokenEndpointAuthMethod = true, "x", "none"
	}
	version.Canonical()[0] = 'x'
	again, err := spec.New(version.Spec())
	if err != nil || again.Hash() != hash || version.Canonical()[0] != '{' {
		t.Fatalf("the Version changed: %v", err)
	}
}

// tree is a valid Spec as JSON.
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
		if rapid.Bool().Draw(t, "oauth") {
			server["oauth"] = map[string]any{"scopes": rapid.SliceOf(rapid.StringMatching(`[a-z:]{1,4}`)).Draw(t, "scopes")}
		}
		servers = append(servers, server)
	}
	return map[string]any{
		"name": "s", "model": map[string]any{"model": "m"}, "mcp_servers": servers,
		"instructions": strings.Map(func(r rune) rune {
			if r != '\n' && r != '\t' && (r < ' ' || 0x7f <= r && r <= 0x9f) {
				return ' '
			}
			return r
		}, rapid.String().Draw(t, "instructions")),
		"limits": map[string]any{"max_turns": rapid.IntRange(1, 1000).Draw(t, "turns")},
	}
}

// shuffled writes a tree with its keys, and the patterns of allow, in another
// order, and with other line ends.
func shuffled(value any, seed *rand.Rand, key string) string {
	switch value := value.(type) {
	case map[string]any:
		var members []string
		for _, name := range slices.Sorted(maps.Keys(value)) {
			members = append(members, fmt.Sprintf("%q: %s", name, shuffled(value[name], seed, name)))
		}
		seed.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return "{" + strings.Join(members, ",\r\n ") + "}"
	case []string:
		mixed := slices.Clone(value)
		if key == "allow" {
			mixed = append(mixed, value[seed.IntN(len(value))])
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
	case string:
		if seed.IntN(2) == 0 {
			value = strings.ReplaceAll(value, "\n", "\r\n")
		}
		encoded, _ := json.Marshal(value)
		return string(encoded)
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
		var form struct{ Instructions string }
		if err := json.Unmarshal(a.Canonical(), &form); err != nil || form.Instructions != one["instructions"] {
			t.Fatalf("the canonical form does not hold %q: %v: %s", one["instructions"], err, a.Canonical())
		}
		other := a.Spec()
		other.Instructions += rapid.SampledFrom([]string{"x", " ", "\n", "\r"}).Draw(t, "more")
		d, err := spec.New(other)
		if err != nil || d.Hash() == a.Hash() {
			t.Fatalf("a change does not count: %v\n%s\n%s", err, a.Canonical(), d.Canonical())
		}
	})
}

func TestAProgramIsToldTheFieldInsteadOfTheLine(t *testing.T) {
	for want, broken := range map[string]func(*spec.Spec){
		"mcp_servers[0].url: the server URL must begin with http:// or https://":                                           func(s *spec.Spec) { s.MCPServers[0].URL = "x" },
		"instructions: the instructions must be UTF-8 text without control characters":                                     func(s *spec.Spec) { s.Instructions = "\xff" },
		"limits.max_turns: max_turns must be from 1 to 1000":                                                               func(s *spec.Spec) { s.Limits.MaxTurns = -1 },
		"mcp_servers[0].allow[0]: the pattern \"*\\xff\" must be a tool's name, or how one begins with a \"*\" at its end": func(s *spec.Spec) { s.MCPServers[0].Allow[0] = "*\xff" },
	} {
		wrong := full()
		broken(&wrong)
		version, err := spec.New(wrong)
		if failure.KindOf(err) != failure.KindSpecInvalid || err.Error() != want || version.Hash() != "" {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
