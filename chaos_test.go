package psych_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/approval"
	"github.com/psych-systems/psych-go/journal/memory"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/spec"
)

const (
	// chaosSeed is the environment variable that has a story played again.
	chaosSeed = "PSYCH_CHAOS_SEED"
	// chaosTenants share the URLs of the story; some have several principals.
	chaosTenants = 50
	// chaosDeadline is each Run's, and chaosGrace how much later its end may be in
	// the journal: an actor that fails again and again is restarted with patience.
	chaosDeadline, chaosGrace = 10 * time.Second, 15 * time.Second
)

// world is a chaos story: a runtime, a server of each era, and what they have been
// seen to do.
type world struct {
	*tally
	seed   uint64
	length time.Duration
	tokens *tokens
	// panics is thrown by all actors, in whatever order they come.
	panics *dice
	// ambush has the pool panic.
	ambush ambush
	scopes []messages.Scope
	agents []cast

	modern, legacy *mcptest.Server
	runtime        *psych.Runtime
	// listing counts the changes of the tool lists.
	listing atomic.Int64
	over    atomic.Bool
}

// cast is a Spec and what its model must know of it.
type cast struct {
	version  spec.Version
	servers  []string
	deferred map[string]bool
}

// briefing is a Run's input: what its model goes by.
type briefing struct {
	Tenant    string `json:"tenant"`
	Principal string `json:"principal"`
	Run       int    `json:"run"`
	Agent     int    `json:"agent"`
	Turns     int    `json:"turns"`
}

// TestChaosStory has many tenants at work on one address of each era, while
// everything fails at random: connections, servers, actors, secrets, planes and
// callers. What must hold for each call, Run and request is looked up afterwards,
// in the Runs' records and the servers' own logs.
func TestChaosStory(t *testing.T) {
	files := openFiles(t)
	w := newWorld(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("this was the story %s=%d", chaosSeed, w.seed)
		}
	})
	var working sync.WaitGroup
	for i := range w.scopes {
		working.Go(func() { w.work(t.Context(), i) })
	}
	w.weather(t)
	w.over.Store(true)
	working.Wait()

	patiently(t, "every connection is idle and closed", func() bool { return w.live(t) == 0 })
	patiently(t, "every stream has ended", func() bool { return w.modern.Streams()+w.legacy.Streams() == 0 })
	w.closeInTheMidst(t)
	w.modern.Stop()
	w.legacy.Stop()
	patiently(t, "every goroutine has ended", func() bool { return goleak.Find() == nil })
	patiently(t, "every file is closed", func() bool { return openFiles(t) <= files })

	w.judgeRequests(w.modern, w.legacy)
	w.judgeCalls()
	w.judgeChaos()
	w.report(t)
}

func newWorld(t *testing.T) *world {
	seed, length := rand.Uint64(), 20*time.Second
	if given := os.Getenv(chaosSeed); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("%s is no seed: %v", chaosSeed, err)
		}
	}
	if testing.Short() {
		length = 4 * time.Second
	}
	w := &world{
		tally: newTally(), seed: seed, length: length, tokens: newTokens(),
		panics: &dice{chance: rand.New(rand.NewPCG(seed, 1))},
	}
	for i := range chaosTenants {
		for principal := range 1 + oneIf(i%3 == 0) + oneIf(i%10 == 0) {
			w.scopes = append(w.scopes, messages.Scope{Tenant: fmt.Sprintf("t%02d", i), Principal: fmt.Sprint("p", principal)})
		}
	}
	w.modern = mcptest.NewServer(t, mcptest.Modern(), mcptest.Authenticate(w.open()), mcptest.PageSize(5), mcptest.Cache(2*time.Second, "private"))
	w.legacy = mcptest.NewServer(t, mcptest.Legacy(mcptest.Version20251125), mcptest.Authenticate(w.open()), mcptest.PageSize(5))
	w.calm()
	w.agents = w.casts(t)
	w.runtime = start(t, psych.Middleware{
		Pool: w.ambush.middleware(w.tally), Connection: w.panicking("connection", 250),
		Catalog: w.panicking("catalog", 120), Run: w.panicking("run", 400),
	}.With(psych.Options{
		Model: psych.UseModel(mind{w}), Store: memory.New(1 << 20), TrustAnnotations: true,
		Approvals: approval.Rules{Selectors: []string{"@destructive"}},
		Tenants:   w.planes(rand.New(rand.NewPCG(seed, 2))),
		MCP: &psych.MCP{
			Secrets: w.tokens, IdleClose: time.Second, ConnectTimeout: 3 * time.Second,
			CallTimeout: 2 * time.Second, CatalogueTTL: 2 * time.Second,
		},
	}))
	return w
}

func oneIf(holds bool) int {
	if holds {
		return 1
	}
	return 0
}

// casts is the Specs of the story: each era shown whole and deferred, a session of
// each Run's own, and all of them at once.
func (w *world) casts(t *testing.T) []cast {
	servers := map[string]spec.Server{
		"crm":   {URL: w.modern.URL(), Preload: new(true)},
		"vault": {URL: w.modern.URL(), Preload: new(false)},
		"old":   {URL: w.legacy.URL(), Preload: new(true)},
		"attic": {URL: w.legacy.URL(), Preload: new(false)},
		"own":   {URL: w.legacy.URL(), Preload: new(true), Session: spec.SessionRun},
	}
	var made []cast
	for i, aliases := range [][]string{{"crm", "vault"}, {"old", "attic"}, {"crm", "own"}, {"crm", "vault", "old", "attic"}} {
		one := cast{servers: aliases, deferred: map[string]bool{}}
		var chosen []spec.Server
		for _, alias := range aliases {
			server := servers[alias]
			server.Name, server.Credential, server.Optional = alias, "key", i > 0
			one.deferred[alias] = !*server.Preload
			chosen = append(chosen, server)
		}
		one.version = agent(t, func(s *spec.Spec) { s.Limits = spec.Limits{MaxTurns: 12, Deadline: chaosDeadline} }, chosen...)
		made = append(made, one)
	}
	return made
}

// work is one principal's: a Run after the other, some of them called off.
func (w *world) work(ctx context.Context, index int) {
	chance := rand.New(rand.NewPCG(w.seed, 1000+uint64(index)))
	for n := 0; !w.over.Load(); n++ {
		brief := w.brief(index, n, chance)
		cancelled, fromAbove, after := chance.IntN(8) == 0, chance.IntN(2) == 0, time.Duration(chance.IntN(300))*time.Millisecond
		under, cancel := context.WithCancel(ctx)
		run := w.begin(under, brief)
		if run != nil {
			if cancelled {
				w.count("cancelled runs")
				call := run.Cancel
				if fromAbove {
					call = cancel
				}
				time.AfterFunc(after, call)
			}
			w.judgeRun(run, brief)
		}
		cancel()
		time.Sleep(time.Duration(chance.IntN(60)) * time.Millisecond)
	}
}

func (w *world) brief(index, n int, chance *rand.Rand) briefing {
	scope := w.scopes[index]
	return briefing{
		Tenant: scope.Tenant, Principal: scope.Principal, Run: index*100_000 + n,
		Agent: chance.IntN(len(w.agents)), Turns: 2 + chance.IntN(4),
	}
}

func (w *world) begin(ctx context.Context, brief briefing) *psych.Run {
	input, err := json.Marshal(brief)
	if err != nil {
		w.fault("a briefing: %v", err)
		return nil
	}
	run, err := w.runtime.Start(ctx, messages.Scope{Tenant: brief.Tenant, Principal: brief.Principal}, w.agents[brief.Agent].version, string(input))
	if err != nil {
		w.fault("a run cannot be started: %v", err)
		return nil
	}
	w.count("runs")
	return run
}

// live counts the connections that are not kept as a memory only.
func (w *world) live(t *testing.T) int {
	connections, err := w.runtime.Connections(t.Context(), "")
	if err != nil {
		return -1
	}
	live := 0
	for _, one := range connections {
		live += oneIf(one.State != "closed")
	}
	return live
}

// closeInTheMidst closes the runtime while every principal has a Run under way.
func (w *world) closeInTheMidst(t *testing.T) {
	chance := rand.New(rand.NewPCG(w.seed, 3))
	before := len(w.modern.Requests("tools/call"))
	var judging sync.WaitGroup
	for i := range w.scopes {
		brief := w.brief(i, 99_000, chance)
		brief.Agent = 0
		if run := w.begin(t.Context(), brief); run != nil {
			judging.Go(func() { w.judgeRun(run, brief) })
		}
	}
	w.modern.WaitFor("tools/call", before+len(w.scopes)/2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.runtime.Close(ctx); err != nil {
		t.Errorf("the runtime does not close: %v", err)
	}
	judging.Wait()
}

// openFiles counts the process's open files; 0 where it cannot be told.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// patiently waits for what a slow machine may be slow at.
func patiently(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("this does not come: %s", what)
			return
		}
	}
}
