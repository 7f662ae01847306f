package psych_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
)

// shownFaults is how many of a story's faults are shown.
const shownFaults = 30

// tally is what was seen in a story.
type tally struct {
	mu       sync.Mutex
	counts   map[string]int
	faults   []string
	executed map[string]int   // by errand
	sessions map[string]owner // by session id
	calls    []endedCall
	content  map[string]bool // the tenants with a call that is ok
}

// endedCall is a call of a server's tool in the records of a Run.
type endedCall struct {
	errand   errand
	tool     string
	deferred bool
	started  bool
	finished journal.ToolCallFinished
}

func newTally() *tally {
	return &tally{
		counts: map[string]int{}, executed: map[string]int{}, sessions: map[string]owner{}, content: map[string]bool{},
	}
}

func (y *tally) count(what string) { y.add(what, 1) }

func (y *tally) add(what string, n int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.counts[what] += n
}

func (y *tally) fault(format string, values ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.faults = append(y.faults, fmt.Sprintf(format, values...))
}

func (y *tally) noteExecution(errand string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.executed[errand]++
}

func (y *tally) noteSession(id, token string) {
	whose, _, ok := ownerOf(token)
	if id == "" || !ok {
		return
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.sessions[id] = whose
	y.counts["sessions"]++
}

// report fails the test for what was wrong.
func (y *tally) report(t *testing.T) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, fault := range y.faults[:min(len(y.faults), shownFaults)] {
		t.Error(fault)
	}
	if more := len(y.faults) - shownFaults; more > 0 {
		t.Errorf("and %d more", more)
	}
	for _, what := range slices.Sorted(maps.Keys(y.counts)) {
		t.Logf("%6d %s", y.counts[what], what)
	}
}

// judgeRun follows a Run to its end and looks at each of its records.
func (w *world) judgeRun(run *psych.Run, brief briefing) {
	wrong := func(format string, values ...any) {
		w.fault("run %d of %s/%s: %s", brief.Run, brief.Tenant, brief.Principal, fmt.Sprintf(format, values...))
	}
	type entry struct {
		requested journal.RequestedCall
		started   bool
		finished  *journal.ToolCallFinished
	}
	calls := map[string]*entry{}
	var last journal.Record
	var began time.Time
	for record := range run.Records() {
		if record.Seq != last.Seq+1 || record.RunID != run.ID() {
			wrong("record %d of %s follows record %d", record.Seq, record.RunID, last.Seq)
		}
		if last.Entry != nil && last.Entry.Type() == journal.TypeRunFinished {
			wrong("a %s follows its end", record.Entry.Type())
		}
		last = record
		switch e := record.Entry.(type) {
		case journal.RunStarted:
			began = record.At
			if e.Scope.Tenant != brief.Tenant || e.Scope.Principal != brief.Principal || record.Seq != 1 {
				wrong("it began as %+v", e.Scope)
			}
		case journal.TurnStarted:
			for _, tool := range e.Tools {
				if strings.HasPrefix(tool.Tool, "mine_") && tool.Tool != "mine_"+brief.Tenant || tool.Tool == "sealed" {
					wrong("it was offered %s", tool.Name)
				}
			}
		case journal.ModelCallFinished:
			for _, asked := range e.ToolCalls {
				if calls[asked.CallID] != nil {
					wrong("two calls are %s", asked.CallID)
				}
				calls[asked.CallID] = &entry{requested: asked}
			}
		case journal.ToolCallStarted:
			if one := calls[e.CallID]; one == nil || one.started || one.finished != nil {
				wrong("call %s is started and was not asked for, or twice", e.CallID)
			} else {
				one.started = true
			}
		case journal.ToolCallFinished:
			if one := calls[e.CallID]; one == nil || one.finished != nil {
				wrong("call %s is finished and was not asked for, or twice", e.CallID)
			} else {
				one.finished = &e
			}
		}
	}
	end, ended := journal.RunFinished{}, false
	if last.Entry != nil {
		end, ended = last.Entry.(journal.RunFinished)
	}
	_, err := run.Wait(context.Background())
	switch {
	case !ended:
		wrong("it has no end (%v)", err)
		return
	case (end.Error == nil) != (err == nil) || end.Error != nil && failure.KindOf(err) != end.Error.Kind:
		wrong("it ended %+v in its records and %v to its caller", end.Error, err)
	case last.At.Sub(began) > chaosDeadline+chaosGrace:
		wrong("it ended after %v", last.At.Sub(began))
	}
	w.count("runs " + string(end.State))
	if end.Error != nil {
		w.count("runs ended by " + string(end.Error.Kind))
	}
	for id, one := range calls {
		switch {
		case one.finished == nil:
			wrong("call %s has no outcome", id)
			continue
		case one.started == (one.finished.Outcome == journal.OutcomeRefused):
			wrong("call %s ended %s; that it started is %t", id, one.finished.Outcome, one.started)
		}
		w.noteCall(one.requested, one.started, *one.finished)
	}
}

func (y *tally) noteCall(asked journal.RequestedCall, started bool, finished journal.ToolCallFinished) {
	e, tool, deferred, ok := errandOf(asked.Name, asked.Arguments)
	if !ok {
		y.count("calls of built-in tools")
		return
	}
	name := "calls " + string(finished.Outcome)
	y.count(name)
	if deferred {
		y.count(name + ", deferred")
	}
	if finished.Error != nil {
		y.count(name + " by " + string(finished.Error.Kind))
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.calls = append(y.calls, endedCall{errand: e, tool: tool, deferred: deferred, started: started, finished: finished})
	if finished.Outcome == journal.OutcomeOK && !y.content[e.Tenant] {
		y.content[e.Tenant] = true
		y.counts["tenants with a call that is ok"]++
	}
}

// judgeRequests looks at each request that reached a server.
func (w *world) judgeRequests(servers ...*mcptest.Server) {
	requested := map[string]int{}
	for _, server := range servers {
		seen := map[string]string{}
		for _, r := range server.Requests(mcptest.Any) {
			what := strings.TrimSpace(r.HTTPMethod + " " + r.Method)
			w.count("requests: " + what)
			whose, number, ok := ownerOf(r.Token())
			if !ok {
				w.fault("a %s has the token %q", what, r.Token())
				continue
			}
			if !w.tokens.begunBeforeTheRotation(whose, number) {
				w.fault("a %s has the token %q, which was rotated before it was resolved", what, r.Token())
			}
			// A GET may be repeated by the HTTP client itself; everything else that is sent
			// has a token that was resolved for it.
			if before, used := seen[r.Token()]; used && (before != what || r.HTTPMethod != mcptest.Get) {
				w.fault("a %s has the token %q, which a %s had", what, r.Token(), before)
			}
			seen[r.Token()] = what
			if id := r.Session(); id != "" {
				if bound, known := w.sessions[id]; !known || bound != whose {
					w.fault("a %s of %+v is in the session %s, which is bound to %+v", what, whose, id, bound)
				}
				w.count("requests in a session")
			}
			if r.Method == "tools/call" {
				requested[w.judgeCallRequest(r, whose)]++
			}
		}
	}
	for _, one := range w.calls {
		if n := requested[one.errand.ID]; n > 0 && !one.started {
			w.fault("call %s of %s ended %s and reached a server %d times", one.errand.ID, one.tool, one.finished.Outcome, n)
		}
	}
}

func (w *world) judgeCallRequest(r mcptest.Request, whose owner) (id string) {
	var params struct {
		Arguments errand `json:"arguments"`
	}
	if err := json.Unmarshal(r.Params, &params); err != nil {
		w.fault("a call has the params %s", r.Params)
	}
	e := params.Arguments
	foreign := strings.HasPrefix(r.Tool, "mine_") && r.Tool != "mine_"+whose.tenant
	if e.Tenant != whose.tenant || e.Principal != whose.principal || foreign || r.Tool == "sealed" {
		w.fault("a call of %s by %s has the token %q", r.Tool, e.echo(), r.Token())
	}
	return e.ID
}

// unsent are the kinds of failure that a call ends by when nothing was carried out:
// one that may have been is unknown, or was answered.
var unsent = []failure.Kind{
	failure.KindMcpServerUnreachable, failure.KindBusy, failure.KindCancelled, failure.KindDeadlineExceeded,
	failure.KindCredentialNotFound, failure.KindEgressDenied,
}

// judgeCalls compares what the Runs recorded with what the servers carried out.
func (w *world) judgeCalls() {
	asked := map[string]bool{}
	for _, one := range w.calls {
		id, times, end := one.errand.ID, w.executed[one.errand.ID], one.finished
		wrong := func(why string) {
			w.fault("call %s of %s ended %s (%+v), carried out %d times: %s", id, one.tool, end.Outcome, end.Error, times, why)
		}
		if asked[id] {
			wrong("it is in two records")
		}
		asked[id] = true
		most := 1 + oneIf(repeatable(one.tool))
		switch {
		case !one.started && times > 0:
			wrong("it was never started")
		case times > most:
			wrong("it was done again")
		case end.Outcome == journal.OutcomeOK && (times == 0 || end.Result != one.errand.echo()):
			wrong("this is its result: " + end.Result)
		case end.Outcome == journal.OutcomeError && end.Error.Kind == failure.KindMcpToolError && (times == 0 || end.Result != one.errand.echo()):
			wrong("this is its failure: " + end.Result)
		case end.Outcome == journal.OutcomeError && times > 0 && slices.Contains(unsent, end.Error.Kind):
			wrong("it is told as if it had not been sent")
		}
	}
	for id, times := range w.executed {
		if !asked[id] {
			w.fault("call %s was carried out %d times and is in no record", id, times)
		}
	}
}

// least is what a whole story must hold for the rest to mean something; a short one, a
// tenth of it.
var least = map[string]int{
	"calls ok": 300, "calls ok, deferred": 50, "calls error by McpToolError": 5, "calls unknown": 20,
	"calls refused by AccessDenied": 20, "calls refused by ApprovalDenied": 5, "calls refused by InvalidArguments": 5,
	"calls refused by UnknownTool": 10, "calls of built-in tools": 5,
	"runs completed": 50, "runs aborted": 10, "cancelled runs": 10,
	"panics of a pool": 3, "panics of a connection": 10, "panics of a catalog": 5, "panics of a run": 10,
	"restarts of the modern server": 3, "restarts of the legacy server": 3,
	"rotations": 10, "changes of planes": 10, "list_changed": 10, "idle connections closed": 5,
	"streams broken": 5, "streams closed": 5, "sessions dropped": 5, "sessions": 50,
	"strikes": 100, "tenants with a call that is ok": 45,
}

// missing is what a story does not hold yet.
func (w *world) missing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var missing []string
	wanted := maps.Clone(least)
	for _, strike := range strikes {
		wanted["strikes: "+strike.String()] = 1
	}
	for what, times := range wanted {
		if testing.Short() {
			times = max(times/10, 1)
		}
		if w.counts[what] < times {
			missing = append(missing, fmt.Sprintf("%d of %d %s", w.counts[what], times, what))
		}
	}
	return missing
}

// judgeChaos sees to it that the story is one.
func (w *world) judgeChaos() {
	for _, what := range w.missing() {
		w.fault("too little happened: %s", what)
	}
	for _, what := range []string{"requests: GET", "requests: DELETE", "requests: POST subscriptions/listen", "requests in a session"} {
		if w.counts[what] == 0 {
			w.fault("there were no %s", what)
		}
	}
}
