package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/psych-systems/psych-go/journal"
)

// spokenTail is how many characters of the model's text an activity keeps.
const spokenTail = 200

// activity is what a Run is doing at this moment, told by its records and by
// the model's text as it arrives. Its methods are safe for concurrent use.
type activity struct {
	mu    sync.Mutex
	since time.Time
	doing string
	// spoken is the end of what the model said in this turn, as it came.
	spoken string
	// calls is the calls that have started and not finished, oldest first.
	calls []runningCall
}

type runningCall struct {
	id, name string
	since    time.Time
}

// Record takes note of a record.
func (a *activity) Record(record journal.Record, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch entry := record.Entry.(type) {
	case journal.RunStarted:
		a.begin("asking the servers for their tools", now)
	case journal.TurnStarted:
		a.begin("the model is thinking", now)
	case journal.ModelCallFinished:
		a.begin("", now)
		if len(entry.ToolCalls) > 0 {
			a.begin("asking the servers for their tools", now)
		}
	case journal.ToolCallStarted:
		a.calls = append(a.calls, runningCall{entry.CallID, entry.Name, now})
	case journal.ToolCallFinished:
		for i, call := range a.calls {
			if call.id == entry.CallID {
				a.calls = append(a.calls[:i], a.calls[i+1:]...)
				break
			}
		}
		a.since = now
	case journal.RunFinished:
		a.begin("", now)
	}
}

func (a *activity) begin(doing string, now time.Time) {
	a.doing, a.since, a.spoken = doing, now, ""
}

// Say takes note of a piece of the model's text.
func (a *activity) Say(piece string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spoken = shortenHead(a.spoken+piece, spokenTail)
}

// Describe is the activity in one line.
func (a *activity) Describe(now time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.calls) > 0 {
		running := make([]string, len(a.calls))
		for i, call := range a.calls {
			running[i] = fmt.Sprintf("%s %s", call.name, seconds(now.Sub(call.since)))
		}
		return "  running  " + strings.Join(running, ", ")
	}
	switch {
	case a.doing == "":
		return ""
	case a.spoken != "":
		return fmt.Sprintf("  the model says %s  %s", seconds(now.Sub(a.since)), shortenHead(printable(a.spoken), 60))
	default:
		return fmt.Sprintf("  %s %s", a.doing, seconds(now.Sub(a.since)))
	}
}

// seconds is a duration as it runs before someone's eyes.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", max(d, 0).Seconds()) }
