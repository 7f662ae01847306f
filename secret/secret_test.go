package secret_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/secret"
)

const planted = "planted-value-7"

func TestNoFormOfPrintingShowsTheValue(t *testing.T) {
	text := secret.NewText(planted)
	type inner struct {
		hidden secret.Text
		Shown  secret.Text
		Pair   map[string]secret.Text
	}
	holder := &inner{hidden: text, Shown: text, Pair: map[string]secret.Text{"a": text}}
	credential := secret.Credential{Value: text, Identity: "id"}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s"} {
		for _, value := range []any{text, &text, holder, *holder, credential, []secret.Text{text}, fmt.Errorf("%v", text)} {
			fmt.Fprintf(&out, verb, value)
		}
	}
	encoded, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	if encoded, err = yaml.Marshal(holder); err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	if err := gob.NewEncoder(&out).Encode(holder); err == nil {
		t.Error("gob found something to write")
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "text", text, "holder", holder, "credential", credential)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "text", text, "holder", holder)
	logger := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&out), zap.DebugLevel))
	logger.Info("x", zap.Any("text", text), zap.Reflect("holder", holder), zap.Stringer("s", text), zap.Inline(text), zap.Any("c", credential))
	shown := out.String()
	for _, form := range []string{planted, fmt.Sprintf("%x", planted), fmt.Sprintf("%X", planted)} {
		if strings.Contains(shown, form) {
			t.Errorf("the value shows: %s", shown)
		}
	}
	if strings.Count(shown, "[redacted]") < 30 {
		t.Errorf("the check looked at too little: %s", shown)
	}
	if text.Reveal() != planted || text.IsZero() || !text.Equal(secret.NewText(planted)) || text.Equal(secret.Text{}) {
		t.Error("the value is lost")
	}
}

func file(t testing.TB, content string) *secret.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secrets.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return secret.NewFile(path, secret.NewIdentities(secret.Text{}))
}

const tenants = `
acme:
  "*": {token: acme-any, shared: same}
  ann: {token: acme-ann}
globex:
  "*": {shared: same, other: x}
"*":
  "*": {model-key: process}
`

func TestAFileKeepsScopesApart(t *testing.T) {
	ctx, resolver := context.Background(), file(t, tenants)
	for _, test := range []struct{ tenant, principal, name, want string }{
		{"acme", "", "token", "acme-any"},
		{"acme", "ann", "token", "acme-ann"},
		{"acme", "bob", "token", "acme-any"},
		{"globex", "", "token", ""},
		{"globex", "ann", "token", ""},
		{"nobody", "", "token", ""},
		{"acme", "", "model-key", ""},
		{"*", "*", "model-key", ""},
		{"*", "", "model-key", ""},
	} {
		got, err := resolver.Resolve(ctx, messages.Scope{Tenant: test.tenant, Principal: test.principal}, test.name)
		if test.want == "" {
			if failure.KindOf(err) != failure.KindCredentialNotFound {
				t.Errorf("%+v: got %v", test, err)
			}
			continue
		}
		if err != nil || got.Value.Reveal() != test.want || got.Identity == "" {
			t.Errorf("%+v: got %q (%v)", test, got.Value.Reveal(), err)
		}
	}
	if key, err := resolver.Process("model-key"); err != nil || key.Reveal() != "process" {
		t.Errorf("the process's secret is %q (%v)", key.Reveal(), err)
	}
	if _, err := resolver.Process("token"); failure.KindOf(err) != failure.KindCredentialNotFound {
		t.Errorf("a tenant's secret is the process's: %v", err)
	}
}

func TestIdentitiesAreEqualExactlyWhereValuesAre(t *testing.T) {
	key := secret.NewText("node key")
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		here, there := secret.NewIdentities(key), secret.NewIdentities(key)
		if (here.Of(a).Identity == there.Of(b).Identity) != (a == b) {
			t.Fatalf("%q and %q", a, b)
		}
		if secret.NewIdentities(secret.Text{}).Of(a).Identity == here.Of(a).Identity {
			t.Fatal("two keys make one identity")
		}
	})
}

func TestARotatedSecretIsSeenAtItsNextUseWithAnotherIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.yaml")
	resolver := secret.NewFile(path, secret.NewIdentities(secret.Text{}))
	resolve := func(value string) secret.Credential {
		if err := os.WriteFile(path, []byte("acme: {\"*\": {token: "+value+"}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := resolver.Resolve(context.Background(), messages.Scope{Tenant: "acme"}, "token")
		if err != nil || got.Value.Reveal() != value {
			t.Fatalf("got %q (%v)", got.Value.Reveal(), err)
		}
		return got
	}
	first, second, again := resolve("one"), resolve("two"), resolve("one")
	if first.Identity == second.Identity || first.Identity != again.Identity {
		t.Error("identities do not follow the value")
	}
}

func TestABadFileIsToldByLineAndNeverByContent(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"no YAML":          {"acme: {\"*\": {token: " + planted, ":1: what stands here is not YAML"},
		"a deep mistake":   {"acme:\n  ann:\n    token: '" + planted, ":3: what stands here is not YAML"},
		"a tab":            {"acme:\n\tann: " + planted, ":2: what stands here is not YAML"},
		"two documents":    {"acme: {}\n---\nacme: {ann: {token: " + planted + "}}", ":3: a second document"},
		"a tenant twice":   {"acme: {}\nglobex: {}\nacme: {}", ":3: a key stands twice in the file"},
		"an alias":         {"acme:\n  ann: {a: &x " + planted + "}", ":2: a secrets file holds mappings and texts only"},
		"a list":           {"- " + planted, ":1: a secrets file holds mappings and texts only"},
		"a text":           {planted, ":1: the file must be a mapping"},
		"too deep":         {"a: {b: {c: {d: {e: " + planted + "}}}}}", ":1: a secrets file nests tenant"},
		"hostile nesting":  {"a: " + strings.Repeat("{", 1<<19), ":1: a secrets file nests tenant"},
		"a flat tenant":    {"acme: " + planted, ":1: a tenant must be a mapping"},
		"a flat principal": {"acme:\n  ann: " + planted, ":2: a principal must be a mapping"},
		"a number":         {"acme:\n  ann:\n    token: 12345", ":3: a secret must be a text"},
		"an empty secret":  {"acme:\n  ann:\n    token: \"\"", ":3: a secret must be a text that is not empty"},
		"a deep secret":    {"acme:\n  ann:\n    token: {a: " + planted + "}", ":3: a secret must be a text"},
	} {
		err := file(t, test.content).Check()
		var invalid *failure.SpecInvalid
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v", err, errors.Unwrap(err)), planted) {
			t.Errorf("%s: the error shows the value: %v", name, err)
		}
	}
}

func TestAFileThatSaysNothingKeepsNothing(t *testing.T) {
	for _, content := range []string{"", "# nothing yet\n", "\ufeff---\n", "acme:\n  ann:\n"} {
		empty := file(t, content)
		if err := empty.Check(); err != nil {
			t.Errorf("%q: %v", content, err)
		}
		if _, err := empty.Resolve(context.Background(), messages.Scope{Tenant: "acme", Principal: "ann"}, "token"); failure.KindOf(err) != failure.KindCredentialNotFound {
			t.Errorf("%q: got %v", content, err)
		}
	}
}

func FuzzFileErrorsNeverShowAValue(f *testing.F) {
	f.Add("acme: {\"*\": {token: ", "}}")
	f.Add("acme:\n\t- ", ": x")
	f.Add("? [", "]\n: &a *a")
	f.Add("- ? &", "\n: |-\n\t%")
	f.Fuzz(func(t *testing.T, before, after string) {
		err := file(t, before+planted+after).Check()
		if err != nil && (failure.KindOf(err) != failure.KindSpecInvalid || strings.Contains(err.Error(), planted)) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestTheEnvironmentKeepsScopesApart(t *testing.T) {
	ctx, resolver := context.Background(), secret.NewEnvironment(secret.NewIdentities(secret.Text{}))
	t.Setenv(secret.EnvironmentName(messages.Scope{Tenant: "acme", Principal: "*"}, "github-token"), "any")
	t.Setenv("PSYCH_SECRET__acme__ann__github_2Dtoken", "ann's")
	for principal, want := range map[string]string{"ann": "ann's", "bob": "any", "": "any"} {
		got, err := resolver.Resolve(ctx, messages.Scope{Tenant: "acme", Principal: principal}, "github-token")
		if err != nil || got.Value.Reveal() != want {
			t.Errorf("%q: got %q (%v)", principal, got.Value.Reveal(), err)
		}
	}
	if _, err := resolver.Resolve(ctx, messages.Scope{Tenant: "acme__ann"}, "github-token"); failure.KindOf(err) != failure.KindCredentialNotFound {
		t.Errorf("another tenant got %v", err)
	}
}

func TestNoTwoCredentialsShareAVariable(t *testing.T) {
	part := rapid.StringMatching(`[aA_2*]{0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		draw := func() [3]string {
			return [3]string{part.Draw(t, "tenant"), part.Draw(t, "principal"), part.Draw(t, "name")}
		}
		a, b := draw(), draw()
		variable := func(c [3]string) string {
			return secret.EnvironmentName(messages.Scope{Tenant: c[0], Principal: c[1]}, c[2])
		}
		if (variable(a) == variable(b)) != (a == b) {
			t.Fatalf("%q and %q share %s", a, b, variable(a))
		}
	})
}

func TestAChainStopsAtASourceThatCannotBeRead(t *testing.T) {
	ctx, identities := context.Background(), secret.NewIdentities(secret.Text{})
	scope := messages.Scope{Tenant: "acme"}
	chain := secret.Chain{file(t, "globex: {}"), file(t, tenants)}
	if got, err := chain.Resolve(ctx, scope, "token"); err != nil || got.Value.Reveal() != "acme-any" {
		t.Errorf("got %q (%v)", got.Value.Reveal(), err)
	}
	broken := secret.Chain{secret.NewFile(filepath.Join(t.TempDir(), "none"), identities), file(t, tenants)}
	if _, err := broken.Resolve(ctx, scope, "token"); failure.KindOf(err) != failure.KindSpecInvalid {
		t.Errorf("got %v", err)
	}
}
