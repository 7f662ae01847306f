package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/config"
	"github.com/psych-systems/psych-go/failure"
)

const whole = `
store: sqlite:psych.db
model: {api: openai, base_url: http://127.0.0.1:9000/v1, credential: model-key}
secrets: {file: secrets.yaml, environment: true, identity_key: identity}
token_store: sqlite:/var/lib/psych/tokens.db
tenants:
  acme:
    servers: {github: https://mcp.example.com/github}
    allow: {github: ["search_*"], records: []}
    egress: {deny_hosts: [evil.example.com, "*.internal", 10.0.0.7, "2001:db8::1", bücher.example]}
    describe: {github: "Our issue tracker."}
  open.example: {}
  closed: {allow: {}}
egress:
  allow_cidrs: [127.0.0.1/32, "fd00::/8"]
  allow_http: true
  allow_hosts: [127.0.0.1]
  deny_hosts: ["*.example.org"]
approvals: {selectors: ["@destructive"], always: ["github__*"], never: [desk__open_ticket, "*"]}
trust_annotations: true
catalogue: {ttl: 1m, budget_chars: 0, max_response_bytes: 1048576}
`

func TestEveryFieldIsRead(t *testing.T) {
	want := config.Config{
		Store:      config.Store{Kind: config.SQLite, Path: "/etc/psych/psych.db"},
		Model:      &config.Model{API: config.APIOpenAI, BaseURL: "http://127.0.0.1:9000/v1", Credential: "model-key"},
		Secrets:    config.Secrets{File: "/etc/psych/secrets.yaml", Environment: true, IdentityKey: "identity"},
		TokenStore: config.Store{Kind: config.SQLite, Path: "/var/lib/psych/tokens.db"},
		Tenants: map[string]config.Tenant{
			"acme": {
				Servers:  map[string]string{"github": "https://mcp.example.com/github"},
				Allow:    map[string][]string{"github": {"search_*"}, "records": {}},
				Egress:   config.TenantEgress{DenyHosts: []string{"evil.example.com", "*.internal", "10.0.0.7", "2001:db8::1", "bücher.example"}},
				Describe: map[string]string{"github": "Our issue tracker."},
			},
			"open.example": {},
			"closed":       {Allow: map[string][]string{}},
		},
		Egress: config.Egress{
			AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("fd00::/8")},
			AllowHTTP:  true, AllowHosts: []string{"127.0.0.1"}, DenyHosts: []string{"*.example.org"},
		},
		Approvals:        config.Approvals{Selectors: []string{"@destructive"}, Always: []string{"github__*"}, Never: []string{"desk__open_ticket", "*"}},
		TrustAnnotations: true,
		Catalogue:        config.Catalogue{TTL: time.Minute, BudgetChars: 0, MaxResponseBytes: 1 << 20},
	}
	got, err := config.Parse("/etc/psych/runtime.yaml", []byte(whole))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
}

func TestWhatIsLeftOutHasItsDefault(t *testing.T) {
	for name, text := range map[string]string{
		"everything left out": "{}",
		"parts left out":      "{secrets: {}, egress: {}, approvals: {}, catalogue: {}, tenants: null, model: null}",
		"defaults written out": `
store: "memory:"
token_store: memory
secrets: {file: null, environment: false, identity_key: null}
egress: {allow_cidrs: null, allow_http: false, allow_hosts: null, deny_hosts: null}
approvals: {selectors: ["@write", "@destructive"], always: null, never: null}
trust_annotations: false
catalogue: {ttl: 300s, budget_chars: 20000, max_response_bytes: 16777216}
`,
	} {
		got, err := config.Parse("f", []byte(text))
		if err != nil || !reflect.DeepEqual(got, config.Default()) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", name, err, got, config.Default())
		}
	}
}

func TestAbsentAndEmptyAreToldApart(t *testing.T) {
	got, err := config.Parse("f", []byte(`
approvals: {selectors: []}
tenants: {open: {}, closed: {allow: {}}, shut: {allow: {github: []}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Approvals.Selectors == nil || len(got.Approvals.Selectors) != 0 {
		t.Errorf("selectors: got %#v", got.Approvals.Selectors)
	}
	if got.Tenants["open"].Allow != nil || got.Tenants["closed"].Allow == nil {
		t.Errorf("allow: got %#v", got.Tenants)
	}
	if patterns, named := got.Tenants["shut"].Allow["github"]; !named || len(patterns) != 0 {
		t.Errorf("allow.github: got %#v", got.Tenants["shut"])
	}
}

func TestModelsHaveTheirEndpoints(t *testing.T) {
	for text, want := range map[string]config.Model{
		"{}":               {API: "openai", BaseURL: "https://api.openai.com/v1"},
		"{credential: k}":  {API: "openai", BaseURL: "https://api.openai.com/v1", Credential: "k"},
		"{api: anthropic}": {API: "anthropic", BaseURL: "https://api.anthropic.com"},
		"{api: anthropic, base_url: 'https://[::1]:8000/'}": {API: "anthropic", BaseURL: "https://[::1]:8000/"},
		"{api: scripted, script: play.yaml}":                {API: "scripted", Script: "dir/play.yaml"},
		"{api: scripted, script: ../play.yaml}":             {API: "scripted", Script: "play.yaml"},
	} {
		got, err := config.Parse("dir/runtime.yaml", []byte("model: "+text))
		if err != nil || *got.Model != want {
			t.Errorf("%s: %v, got %+v, want %+v", text, err, got.Model, want)
		}
	}
}

func TestAStorePrintsNoPassword(t *testing.T) {
	const url = "postgres://psych:hunter2@db.example.com:5432/psych?password=hunter2&sslmode=verify-full"
	got, err := config.Parse("f", []byte("store: "+url+"\ntoken_store: "+url))
	if err != nil || got.Store.Kind != config.Postgres || got.Store.URL != url || got.TokenStore != got.Store {
		t.Fatalf("%v: got %q", err, got.Store.URL)
	}
	encoded, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{fmt.Sprint(got), fmt.Sprintf("%+v", got), fmt.Sprintf("%#v", got), got.Store.String(), string(encoded)} {
		if strings.Contains(printed, "hunter2") || !strings.Contains(printed, "db.example.com") {
			t.Errorf("printed %s", printed)
		}
	}
	for _, written := range []string{"memory:", "sqlite:/x/y.db"} {
		got, err := config.Parse("f", []byte("store: '"+written+"'"))
		if err != nil || got.Store.String() != written {
			t.Errorf("%v: got %s, want %s", err, got.Store, written)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "runtime.yaml")
	if err := os.WriteFile(path, []byte("secrets: {file: secrets.yaml}"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(path)
	if err != nil || got.Secrets.File != filepath.Join(dir, "secrets.yaml") {
		t.Errorf("%v: got %+v", err, got.Secrets)
	}
	if err := os.WriteFile(path, []byte("secrets: {file: 'secrets.yaml'}\nstore: "+strings.Repeat("x", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		path:                       path + ":1: the document has 1048577 bytes and 1048576 are allowed",
		filepath.Join(dir, "none"): filepath.Join(dir, "none") + ": the configuration file does not exist",
		dir:                        dir + ": the configuration file cannot be read",
	} {
		if _, err := config.Load(path); failure.KindOf(err) != failure.KindSpecInvalid || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestWhatIsRefusedAndWhere reads every file of testdata/refused. Its name says
// what is wrong; its whole sentence stands in refused.txt.
func TestWhatIsRefusedAndWhere(t *testing.T) {
	listed, err := os.ReadFile("testdata/refused/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	sentences := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		file, _, _ := strings.Cut(line, ":")
		sentences[file] = strings.TrimSuffix(line, "\n")
	}
	files, err := filepath.Glob("testdata/refused/*.yaml")
	if err != nil || len(files) != len(sentences) {
		t.Fatalf("%d files and %d sentences: %v", len(files), len(sentences), err)
	}
	for _, path := range files {
		file := filepath.Base(path)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = config.Parse(file, data)
		if _, is := errors.AsType[*failure.SpecInvalid](err); !is || err.Error() != sentences[file] {
			t.Errorf("got  %v\nwant %s", err, sentences[file])
			continue
		}
		for cause := err; cause != nil; cause = errors.Unwrap(cause) {
			if strings.Contains(cause.Error(), "hunter2") {
				t.Errorf("%s: a secret is repeated: %v", file, cause)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/refused/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(whole))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := config.Parse("f", data)
		switch {
		case err == nil && (got.Approvals.Selectors == nil || got.Store.Kind == "" || got.Catalogue.TTL <= 0):
			t.Fatalf("a default is missing: %+v", got)
		case err != nil && (failure.KindOf(err) != failure.KindSpecInvalid || !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n")):
			t.Fatalf("got %v", err)
		}
	})
}
