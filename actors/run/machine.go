package run

import (
	"maps"
	"slices"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/offer"
	"github.com/psych-systems/psych-go/spec"
)

// State is where a Run stands.
type State int

// The states of a Run; see the package's documentation.
const (
	Loading State = iota
	Resolving
	Thinking
	Acting
	Finishing
	Finished
)

func (s State) String() string {
	return [...]string{"loading", "resolving", "thinking", "acting", "finishing", "finished"}[s]
}

// undispatchableTurns is how many turns in a row may consist of calls that
// cannot be dispatched, before the Run is given up.
const undispatchableTurns = 5

// machine is a Run without its surroundings: messages in, effects out.
type machine struct {
	runID string
	spec  spec.Spec
	start journal.RunStarted
	rules rules

	state State
	// log is the fold of what the journal holds; it never runs ahead of it.
	log *journal.State
	// loaded says that the journal was read: nothing is appended before.
	loaded bool
	// writing is the entries of the append in flight, queued those that follow
	// it. At most one append is in flight, so that the journal's order is the
	// order of decisions.
	writing, queued []journal.Entry
	// ending is how the Run ends, once that is decided; state is then Finishing.
	ending *journal.RunFinished

	// servers collects the turn's resolution, one per server of the Spec.
	servers []resolution
	offer   *offer.Offer
	// offerTurn is the turn that offer was resolved for; it differs from the
	// log's turn after a restart, and while the next turn is being resolved.
	offerTurn int
	// asked counts model calls; an answer to an older one is dropped.
	asked int
	// calls is the planned and running calls of the current answer by id. A call
	// leaves it when its outcome is decided, so a second answer finds nothing.
	calls map[string]*plan
	// seen is the ids that calls of this Run have had.
	seen seenIDs
}

// resolution is how far the turn's resolution of one server has come.
type resolution struct {
	requestID string
	snapshot  *messages.Snapshot
	err       error
	done      bool
	// rekeyed says that the key was made anew once already: a credential was rotated,
	// or a grant consented to, while the question waited.
	rekeyed bool
}

// plan is a call on its way.
type plan struct {
	id    string
	route offer.Route
	// target is where a server's tool is reached; nil for host tools.
	target *messages.Target
	// rekeyed says that the key was made anew once already for this call.
	rekeyed bool
	// started is when the journal had the call's start; zero before.
	started time.Time
}

func (p *plan) sent() bool { return !p.started.IsZero() }

func newMachine(runID string, definition spec.Spec, start journal.RunStarted, r rules) *machine {
	return &machine{
		runID: runID, spec: definition, start: start, rules: r,
		log: &journal.State{}, calls: map[string]*plan{},
	}
}

// onLoaded begins a new Run, or continues one whose journal has records.
func (m *machine) onLoaded(records []journal.Record) []effect {
	if m.loaded {
		return nil
	}
	m.loaded = true
	var effects []effect
	for _, record := range records {
		if err := m.log.Apply(record); err != nil {
			return []effect{giveUp{err}}
		}
		effects = append(effects, published{record})
	}
	switch {
	case len(records) == 0:
		return m.write(m.start)
	case m.log.Finished != nil:
		return append(effects, m.becomeFinished()...)
	case m.ending != nil:
		return append(effects, m.flush()...)
	}
	effects = append(effects, armDeadline{m.log.StartedAt.Add(m.spec.Limits.Deadline)})
	lost := &journal.Error{Kind: failure.KindOutcomeUnknown, Message: interruptedSentence}
	if settled := journal.SettleStarted(m.log, lost); len(settled) > 0 {
		return append(effects, m.write(settled...)...)
	}
	return append(effects, m.proceed()...)
}

// onAppended takes note that entries are in the journal, and does what they
// decide.
func (m *machine) onAppended(records []journal.Record) []effect {
	var effects []effect
	for _, record := range records {
		if err := m.log.Apply(record); err != nil {
			return []effect{giveUp{err}}
		}
		effects = append(effects, published{record})
		switch entry := record.Entry.(type) {
		case journal.RunStarted:
			effects = append(effects, armDeadline{record.At.Add(m.spec.Limits.Deadline)})
		case journal.ToolCallStarted:
			effects = append(effects, m.onCallRecorded(entry, record.At)...)
		case journal.RunFinished:
			return append(effects, m.becomeFinished()...)
		}
	}
	// Only now, with all records applied, does the log say where to append next.
	m.writing = nil
	effects = append(effects, m.proceed()...)
	return append(effects, m.flush()...)
}

// onAppendFailed ends the actor: a Run that cannot write must not act.
func (m *machine) onAppendFailed(err error) []effect { return []effect{giveUp{err}} }

// proceed does what the log says comes next. It is the one place that decides,
// so a Run that is continued takes the same way as one that never stopped. It
// may be asked at any time and does nothing while that step is under way.
func (m *machine) proceed() []effect {
	if m.state == Finishing {
		return nil
	}
	answered, settled := m.log.Answered, m.log.Settled()
	switch {
	case answered && len(m.log.Calls) == 0 && m.log.Cut != "":
		return m.fail(failure.New(failure.KindModelError, "the model's last answer is not whole: "+m.log.Cut, nil))
	case answered && len(m.log.Calls) == 0:
		return m.end(journal.StateCompleted, nil)
	case m.log.Turn == 0 || answered && settled:
		return m.nextTurn()
	case m.offerTurn != m.log.Turn:
		return m.becomeResolving()
	case !answered:
		return m.becomeThinking()
	default:
		return m.becomeActing()
	}
}

func (m *machine) nextTurn() []effect {
	switch {
	case m.log.Turn >= m.spec.Limits.MaxTurns:
		return m.fail(failure.New(failure.KindTurnLimit, turnLimitSentence(m.spec.Limits.MaxTurns), nil))
	case m.log.UndispatchableTurns >= undispatchableTurns:
		return m.fail(failure.New(failure.KindModelError, undispatchableSentence, nil))
	default:
		return m.becomeResolving()
	}
}

// onModelDone takes the model's answer.
func (m *machine) onModelDone(asked int, response model.Response, err error, took time.Duration) []effect {
	if m.state != Thinking || asked != m.asked {
		return nil
	}
	if err != nil {
		return m.fail(err)
	}
	return m.write(journal.ModelCallFinished{
		Turn: m.log.Turn, Text: response.Text, ToolCalls: m.requestedCalls(response.ToolCalls),
		Usage: response.Usage, RequestBytes: response.RequestBytes, DurationMS: took.Milliseconds(), Cut: response.Cut,
	})
}

// onDeadline ends the Run although work may hang.
func (m *machine) onDeadline() []effect {
	return m.fail(failure.New(failure.KindDeadlineExceeded, deadlineSentence(m.spec.Limits.Deadline), nil))
}

// onCancel ends the Run because its owner called it off.
func (m *machine) onCancel() []effect {
	return m.end(journal.StateAborted, failure.New(failure.KindCancelled, "the run was cancelled", nil))
}

func (m *machine) fail(err error) []effect { return m.end(journal.StateFailed, err) }

// end decides the Run's end: work in flight is called off and what it may still
// bring is ignored. Outcomes that are known already are still written.
func (m *machine) end(state journal.RunState, why error) []effect {
	if m.state == Finishing || m.state == Finished {
		return nil
	}
	m.state = Finishing
	m.ending = &journal.RunFinished{State: state, Error: recorded(why)}
	if state == journal.StateCompleted {
		m.ending.Text = m.answerText()
	}
	effects := []effect{stopWork{}}
	for _, id := range slices.Sorted(maps.Keys(m.calls)) {
		if call := m.calls[id]; call.sent() && call.target != nil {
			effects = append(effects, cancelCall{callID: id, target: call.target})
		}
	}
	m.calls = map[string]*plan{}
	m.queued = outcomes(m.queued)
	return append(effects, m.flush()...)
}

// outcomes keeps of entries the outcomes of calls, and the starts that go with
// them.
func outcomes(entries []journal.Entry) []journal.Entry {
	known := map[string]bool{}
	for _, entry := range entries {
		if finished, ok := entry.(journal.ToolCallFinished); ok {
			known[finished.CallID] = true
		}
	}
	return slices.DeleteFunc(entries, func(entry journal.Entry) bool {
		switch e := entry.(type) {
		case journal.ToolCallFinished:
			return false
		case journal.ToolCallStarted:
			return !known[e.CallID]
		default:
			return true
		}
	})
}

func (m *machine) becomeThinking() []effect {
	if m.state == Thinking {
		return nil
	}
	m.state = Thinking
	m.asked++
	return []effect{askModel{asked: m.asked, request: m.request()}}
}

func (m *machine) becomeFinished() []effect {
	m.state = Finished
	return []effect{stopWork{}, stop{}}
}

// write appends entries, after those that are on their way.
func (m *machine) write(entries ...journal.Entry) []effect {
	m.queued = append(m.queued, entries...)
	return m.flush()
}

// flush begins the next append. The end comes last, over what is then open.
func (m *machine) flush() []effect {
	if !m.loaded || len(m.writing) > 0 {
		return nil
	}
	m.writing, m.queued = m.queued, nil
	if len(m.writing) == 0 && m.ending != nil {
		m.writing = journal.Settle(m.log, *m.ending)
	}
	if len(m.writing) == 0 {
		return nil
	}
	return []effect{appendEntries{expected: m.log.Seq, entries: m.writing}}
}

// answerText is the text of the last answer.
func (m *machine) answerText() string {
	for i := len(m.log.Conversation) - 1; i >= 0; i-- {
		if message := m.log.Conversation[i]; message.Role == model.RoleAssistant {
			return message.Text
		}
	}
	return ""
}

func recorded(err error) *journal.Error {
	if err == nil {
		return nil
	}
	shown := messages.FailureOf(err)
	return &journal.Error{Kind: failure.Kind(shown.GetKind()), Message: shown.GetMessage()}
}
