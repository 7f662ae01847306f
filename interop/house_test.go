package interop_test

import (
	"context"
	"flag"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/approval"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/spec"
)

// TestMain has the peers tell their stories beside each other: mostly they wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var (
	acme   = messages.Scope{Tenant: "acme", Principal: "ann"}
	globex = messages.Scope{Tenant: "globex", Principal: "gil"}
)

// tokens is the one credential, "key", of each tenant.
type tokens struct{}

var identities = secret.NewIdentities(secret.Text{})

// tokenOf is a tenant's token.
func tokenOf(scope messages.Scope) string { return "token-of-" + scope.Tenant }

// Resolve implements secret.Resolver.
func (tokens) Resolve(_ context.Context, scope messages.Scope, name string) (secret.Credential, error) {
	if name != "key" {
		return secret.Credential{}, failure.New(failure.KindCredentialNotFound, "no credential named "+name, nil)
	}
	return identities.Of(tokenOf(scope)), nil
}

// house is a runtime beside a peer, and what the peer has seen since.
type house struct {
	*psych.Runtime
	t     testing.TB
	peer  peer
	at    server
	stage *stage
	// since is how many requests the peer had seen before.
	since int
}

// enter makes a runtime of its own for one story with a running peer.
func enter(t testing.TB, p peer, at server) *house {
	t.Helper()
	h := &house{t: t, peer: p, at: at, stage: &stage{runs: map[string]*conversation{}}}
	h.since = h.now()
	runtime, err := psych.New(psych.Options{
		Model: psych.UseModel(h.stage), Approvals: approval.Rules{Selectors: []string{}},
		// A list lives so long that only a change has it fetched again.
		MCP: &psych.MCP{Secrets: tokens{}, CatalogueTTL: time.Hour},
		Egress: egress.Policy{
			AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Runtime = runtime
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := runtime.Close(ctx); err != nil {
			t.Errorf("the runtime does not close: %v", err)
		}
	})
	return h
}

// now is how many requests the peer has seen, of which all are known from then on.
func (h *house) now() int {
	h.at.Order("tell")
	return len(h.at.Requests())
}

func (h *house) url() string { return h.at.Origin() + h.peer.path }

// agent is a Spec over the peer.
func (h *house) agent(change func(*spec.Server)) spec.Version {
	h.t.Helper()
	server := spec.Server{Name: "peer", URL: h.url(), Transport: h.peer.transport, Credential: "key"}
	if change != nil {
		change(&server)
	}
	version, err := spec.New(spec.Spec{Name: "agent", Model: spec.Model{Model: "m"}, MCPServers: []spec.Server{server}})
	if err != nil {
		h.t.Fatal(err)
	}
	return version
}

// seen is what the peer has seen of one thing since the story began.
func (h *house) seen(what string) []mcptest.Request { return h.seenAfter(h.since, what) }

func (h *house) seenAfter(since int, what string) []mcptest.Request {
	var found []mcptest.Request
	for _, request := range h.at.Requests()[since:] {
		if request.About(what) {
			found = append(found, request)
		}
	}
	return found
}

// connection is the one connection to the peer.
func (h *house) connection() psych.Connection {
	h.t.Helper()
	connections, err := h.Connections(h.t.Context(), acme.Tenant)
	if err != nil || len(connections) != 1 {
		h.t.Fatalf("the connections are %+v (%v)", connections, err)
	}
	return connections[0]
}
