package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/psych-systems/psych-go/journal"
)

// story tells one Run's records to a person, in lines of a label and a text.
type story struct {
	paint paint
	// width is how many characters a line has.
	width int

	began time.Time
	turns int
	calls int
	// offered is the names of the tools of the turn before; nil before the first.
	offered []string
	// arguments is what each call was asked with, by call id.
	arguments map[string]string
}

const (
	// labelWidth is the column of the labels, and indent the column beneath them.
	labelWidth = 9
	indent     = "         "
	// durationRoom is the width that a call's line keeps for its duration.
	durationRoom = 10
	// longestReason is how many characters of a reason are told.
	longestReason = 500
)

func newStory(paint paint, width int) *story {
	return &story{paint: paint, width: max(width, 40), arguments: map[string]string{}}
}

// Lines tells one record. They must come in order.
func (s *story) Lines(record journal.Record) []string {
	switch entry := record.Entry.(type) {
	case journal.RunStarted:
		s.began = record.At
		return s.tell(s.paint.head, "run", fmt.Sprintf("%s of %s, version %.12s, for %s",
			record.RunID, entry.Spec, entry.Version, entry.Scope))
	case journal.TurnStarted:
		return s.turn(entry)
	case journal.ModelCallFinished:
		return s.model(entry)
	case journal.ToolCallStarted:
		s.calls++
		s.arguments[entry.CallID] = string(entry.Arguments)
		return nil
	case journal.ToolCallFinished:
		return s.call(entry)
	case journal.RunFinished:
		return s.end(record.At, entry)
	default:
		return nil
	}
}

func (s *story) turn(entry journal.TurnStarted) []string {
	s.turns = entry.Turn
	names := make([]string, len(entry.Tools))
	for i, tool := range entry.Tools {
		names[i] = tool.Name
	}
	text := plural(len(names), "tool")
	var servers []string
	for _, server := range entry.Servers {
		switch {
		case server.Deferred:
			servers = append(servers, fmt.Sprintf("%s %d on demand", server.Name, server.ToolCount))
		case server.Reachable:
			servers = append(servers, fmt.Sprintf("%s %d", server.Name, server.ToolCount))
		}
	}
	if len(servers) > 0 {
		text += ": " + strings.Join(servers, ", ")
	}
	if s.turns > 1 {
		text += changes(s.offered, names)
	}
	s.offered = names
	lines := s.tell(s.paint.head, fmt.Sprintf("turn %d", entry.Turn), text)
	for _, server := range entry.Servers {
		if !server.Reachable {
			lines = append(lines, s.tell(s.paint.doubt, "without", server.Name+", which is unavailable: "+server.Reason)...)
		}
	}
	return lines
}

// changes tells which tools came and went between two turns.
func changes(before, now []string) string {
	text := ""
	if came := without(now, before); len(came) > 0 {
		text += "; new: " + strings.Join(came, ", ")
	}
	if went := without(before, now); len(went) > 0 {
		text += "; gone: " + strings.Join(went, ", ")
	}
	return text
}

func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

func (s *story) model(entry journal.ModelCallFinished) []string {
	text := elapsed(entry.DurationMS)
	if usage := entry.Usage; usage.Input != nil && usage.Output != nil {
		text += fmt.Sprintf(", %d tokens in and %d out", *usage.Input, *usage.Output)
	}
	names := make([]string, len(entry.ToolCalls))
	for i, call := range entry.ToolCalls {
		names[i] = call.Name
		s.arguments[call.CallID] = call.Arguments
	}
	switch len(names) {
	case 0:
		text += ", answers"
	case 1:
		text += ", asks for " + names[0]
	default:
		text += fmt.Sprintf(", asks for %d calls at once: %s", len(names), strings.Join(names, ", "))
	}
	lines := s.tell(s.paint.quiet, "model", text)
	if said := printable(entry.Text); said != "" && len(names) > 0 {
		lines = append(lines, indent+s.short("says: "+said))
	}
	return lines
}

func (s *story) call(entry journal.ToolCallFinished) []string {
	colour := map[journal.Outcome]func(string) string{
		journal.OutcomeOK: s.paint.good, journal.OutcomeUnknown: s.paint.doubt,
	}[entry.Outcome]
	if colour == nil {
		colour = s.paint.bad
	}
	text := entry.Name
	if arguments := printable(s.arguments[entry.CallID]); arguments != "" && arguments != "{}" {
		text += " " + arguments
	}
	line := s.label(colour, string(entry.Outcome))
	if entry.Outcome == journal.OutcomeRefused {
		line += s.short(text)
	} else {
		line += shorten(printable(text), s.room()-durationRoom) + "  " + s.paint.quiet(elapsed(entry.DurationMS))
	}
	lines := []string{line}
	if entry.Error != nil {
		return append(lines, s.beneath(shorten(printable(entry.Error.Message), longestReason))...)
	}
	if result := printable(entry.Result); result != "" {
		lines = append(lines, indent+s.paint.quiet(s.short(result)))
	}
	return lines
}

func (s *story) end(at time.Time, entry journal.RunFinished) []string {
	colour := s.paint.bad
	if entry.State == journal.StateCompleted {
		colour = s.paint.good
	}
	return s.tell(colour, "end", fmt.Sprintf("%s after %s, %s and %s", entry.State,
		plural(s.turns, "turn"), plural(s.calls, "call"), elapsed(at.Sub(s.began).Milliseconds())))
}

// tell is a label and a text, wrapped.
func (s *story) tell(colour func(string) string, label, text string) []string {
	lines := s.beneath(text)
	lines[0] = s.label(colour, label) + strings.TrimPrefix(lines[0], indent)
	return lines
}

func (s *story) label(colour func(string) string, label string) string {
	return colour(label) + strings.Repeat(" ", max(labelWidth-len(label), 1))
}

// beneath is a text beside which no label stands.
func (s *story) beneath(text string) []string {
	lines := wrap(printable(text), s.room())
	for i := range lines {
		lines[i] = indent + lines[i]
	}
	return lines
}

func (s *story) short(text string) string { return shorten(printable(text), s.room()) }

// room is the width beside the labels.
func (s *story) room() int { return s.width - labelWidth }

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

// elapsed is a duration that has passed.
func elapsed(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%d ms", max(ms, 0))
	}
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}
