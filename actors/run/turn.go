package run

import (
	"errors"
	"fmt"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/offer"
	"github.com/psych-systems/psych-go/spec"
)

// becomeResolving asks every server of the Spec for its catalogue.
func (m *machine) becomeResolving() []effect {
	if m.state == Resolving {
		return nil
	}
	m.state = Resolving
	m.servers = make([]resolution, len(m.spec.MCPServers))
	var effects []effect
	for i := range m.spec.MCPServers {
		effects = append(effects, findTarget{purpose: forCatalogue(m.resolving(), i), server: m.spec.MCPServers[i]})
	}
	return append(effects, m.resolved()...)
}

// resolving is the turn that is being resolved: the current one after a
// restart, else the next.
func (m *machine) resolving() int {
	if m.log.Turn > 0 && !(m.log.Answered && m.log.Settled()) {
		return m.log.Turn
	}
	return m.log.Turn + 1
}

// onCatalogueTarget asks a server whose key is known.
func (m *machine) onCatalogueTarget(turn, index int, target *messages.Target, err error) []effect {
	if m.state != Resolving || turn != m.resolving() || m.servers[index].done {
		return nil
	}
	if err != nil {
		m.servers[index].err, m.servers[index].done = err, true
		return m.resolved()
	}
	id := fmt.Sprintf("%s/%d/%d", m.runID, turn, index)
	if m.servers[index].rekeyed {
		id += "/again"
	}
	m.servers[index].requestID = id
	return []effect{getCatalogue{requestID: id, target: target}}
}

// onCatalogue takes a server's answer; err stands for an answer that never came.
func (m *machine) onCatalogue(requestID string, snapshot *messages.Snapshot, err error) []effect {
	if m.state != Resolving {
		return nil
	}
	for i := range m.servers {
		if server := &m.servers[i]; server.requestID == requestID && !server.done {
			if errors.Is(err, messages.ErrStaleKey) && !server.rekeyed {
				server.requestID, server.rekeyed = "", true
				return []effect{findTarget{purpose: forCatalogue(m.resolving(), i), server: m.spec.MCPServers[i]}}
			}
			server.snapshot, server.err, server.done = snapshot, err, true
			return m.resolved()
		}
	}
	return nil
}

// resolved ends the resolution once every server has answered.
func (m *machine) resolved() []effect {
	for i := range m.servers {
		if !m.servers[i].done {
			return nil
		}
	}
	servers := make([]offer.Server, len(m.servers))
	for i, found := range m.servers {
		definition := m.spec.MCPServers[i]
		if found.err != nil && !tolerated(definition, found.err) {
			return m.fail(found.err)
		}
		servers[i] = offer.Server{
			Alias: definition.Name, Snapshot: found.snapshot, Unreachable: found.err,
			Tenant: m.rules.tenant(definition.Name), Spec: definition.Grant(),
			Preload: definition.Preload, Description: m.rules.describe(definition.Name),
		}
	}
	turn := m.resolving()
	resolved, err := offer.Resolve(m.offer, servers, m.rules.hosts, m.rules.budget)
	if err != nil {
		return m.fail(err)
	}
	m.offer, m.offerTurn = resolved, turn
	if turn == m.log.Turn {
		return m.proceed()
	}
	return m.write(journal.TurnStarted{Turn: turn, Tools: resolved.Recorded, Servers: resolved.Servers})
}

// tolerated reports whether a Run goes on without a server: only an optional
// one that cannot be reached. Every other failure is told, not hidden.
func tolerated(server spec.Server, err error) bool {
	return server.Optional && failure.KindOf(err) == failure.KindMcpServerUnreachable
}

// request is what the model is asked in this turn.
func (m *machine) request() model.Request {
	system := m.spec.Instructions
	if m.offer.Lines != "" {
		if system != "" {
			system += "\n\n"
		}
		system += m.offer.Lines
	}
	return model.Request{
		Model: m.spec.Model.Model, System: system,
		Messages: shownConversation(m.log.Conversation), Tools: m.offer.Shown,
	}
}

const (
	undispatchableSentence = "the model asked again and again for calls that cannot be made"
	interruptedSentence    = "the run was interrupted while the call was on its way"
)

func turnLimitSentence(turns int) string {
	return fmt.Sprintf("the run used up its limit of %d turns", turns)
}

func deadlineSentence(deadline time.Duration) string {
	return fmt.Sprintf("the run did not end within its deadline of %s", deadline)
}
