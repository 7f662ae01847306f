package catalog

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

var (
	begin   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	errList = failure.New(failure.KindMcpServerUnreachable, "no list", nil)
)

func asked(id int) supervision.Asked { return supervision.Asked{Asker: "run", ID: fmt.Sprint(id)} }

func list(etag string) *messages.Snapshot { return &messages.Snapshot{Etag: etag} }

// told are effects in words.
func told(effects []effect) []string {
	var words []string
	for _, one := range effects {
		switch e := one.(type) {
		case answerSnapshot:
			words = append(words, fmt.Sprintf("answer %s: %s v%d", e.asked.ID, e.snapshot.GetEtag(), e.snapshot.GetVersion()))
		case answerFailure:
			words = append(words, fmt.Sprintf("fail %s: %s", e.asked.ID, failure.KindOf(e.why)))
		case fetch:
			words = append(words, fmt.Sprintf("fetch %d", e.number))
		case abandon:
			words = append(words, "abandon")
		case fetchAfter:
			words = append(words, "fetch after "+e.wait.String())
		case publish:
			words = append(words, fmt.Sprintf("publish v%d", e.snapshot.GetVersion()))
		case reportFailed:
			words = append(words, "report")
		case sweepAfter:
			words = append(words, "sweep after "+e.lives.String())
		case openWatch:
			words = append(words, fmt.Sprintf("watch %d", e.breaks))
		case closeWatch:
			words = append(words, "close watch")
		}
	}
	return words
}

func TestStories(t *testing.T) {
	type step struct {
		does  func(m *machine, now time.Time) []effect
		after time.Duration // since the step before
		want  []string
		state State
	}
	opens := step{func(m *machine, now time.Time) []effect { return m.onSessionOpened(1, now) }, 0, []string{"fetch 1", "watch 0"}, Fetching}
	asks := func(id int, fresh bool) func(*machine, time.Time) []effect {
		return func(m *machine, now time.Time) []effect { return m.onAsk(asked(id), fresh, now) }
	}
	fetches := func(number uint64, etag string) func(*machine, time.Time) []effect {
		return func(m *machine, now time.Time) []effect { return m.onFetched(number, list(etag), nil, nil, now) }
	}
	fails := func(number uint64) func(*machine, time.Time) []effect {
		return func(m *machine, now time.Time) []effect { return m.onFetched(number, nil, nil, errList, now) }
	}
	first := step{fetches(1, "a"), 0, []string{"publish v1", "sweep after 1m0s"}, Fresh}
	changes := func(m *machine, now time.Time) []effect { return m.onChanged(now) }
	streams := func(m *machine, now time.Time) []effect { return m.onWatchOpened(1, now) }
	rings := func(m *machine, now time.Time) []effect { return m.onDue(now) }
	sweeps := func(number uint64) func(*machine, time.Time) []effect {
		return func(m *machine, now time.Time) []effect { return m.onSweep(number, now) }
	}
	ends := func(m *machine, now time.Time) []effect { return m.onWatchEnded(1, true, now) }
	closes := func(m *machine, _ time.Time) []effect { return m.onSessionClosed(1, errList) }

	for name, steps := range map[string][]step{
		"without a session there is nothing": {
			{asks(1, false), 0, []string{"fail 1: McpServerUnreachable"}, Detached},
			{changes, 0, nil, Detached},
			{fetches(0, "a"), 0, nil, Detached},
		},
		"one fetch serves all who wait": {
			opens,
			{asks(1, false), 0, nil, Fetching},
			{asks(2, false), 0, nil, Fetching},
			{fails(1), 0, []string{"fail 1: McpServerUnreachable", "fail 2: McpServerUnreachable", "report"}, Empty},
			{asks(3, false), 0, []string{"fetch 2"}, Fetching},
			{fetches(2, "a"), 0, []string{"answer 3: a v1", "publish v1", "sweep after 1m0s"}, Fresh},
			{asks(4, false), 0, []string{"answer 4: a v1"}, Fresh},
		},
		"a fresh list is one whose fetch began after the question": {
			opens,
			{asks(1, true), 0, nil, Fetching},
			{fetches(1, "a"), 0, []string{"publish v1", "sweep after 1m0s", "fetch 2"}, Refreshing},
			{asks(2, false), 0, []string{"answer 2: a v1"}, Refreshing},
			{fetches(2, "b"), 0, []string{"answer 1: b v2", "publish v2", "sweep after 1m0s"}, Fresh},
		},
		"a change during a fetch makes its result stale, and one more follows": {
			opens,
			{asks(1, false), 0, nil, Fetching},
			{changes, 0, nil, Fetching},
			{changes, 0, nil, Fetching},
			{asks(2, false), 0, nil, Fetching},
			{fetches(1, "a"), 0, []string{"answer 1: a v1", "publish v1", "sweep after 1m0s", "fetch 2"}, Fetching},
			{fetches(2, "b"), 0, []string{"answer 2: b v2", "publish v2", "sweep after 1m0s"}, Fresh},
		},
		"a storm of changes is one fetch a second": {
			opens,
			first,
			{changes, 0, []string{"fetch after 1s"}, Stale},
			{changes, 300 * time.Millisecond, nil, Stale},
			{rings, 700 * time.Millisecond, []string{"fetch 2"}, Fetching},
			{changes, 0, nil, Fetching},
			{fetches(2, "b"), 100 * time.Millisecond, []string{"publish v2", "sweep after 1m0s", "fetch after 900ms"}, Stale},
			{asks(1, false), 0, []string{"fetch 3"}, Fetching},
			{rings, 900 * time.Millisecond, nil, Fetching},
			{fetches(3, "b"), 0, []string{"answer 1: b v2", "publish v2", "sweep after 1m0s"}, Fresh},
		},
		"a stream that opened is reason to look again, not to doubt at once": {
			opens,
			first,
			{streams, time.Minute / 2, []string{"fetch 2"}, Refreshing},
			{asks(1, false), 0, []string{"answer 1: a v1"}, Refreshing},
			{fails(2), 0, []string{"report"}, Stale},
			{asks(2, false), 0, []string{"fetch 3"}, Fetching},
			{fails(3), 0, []string{"fail 2: McpServerUnreachable", "report"}, Stale},
		},
		"a sweep that fails costs nobody a list whose time is not over": {
			opens,
			first,
			{asks(1, false), 0, []string{"answer 1: a v1"}, Fresh},
			{sweeps(1), 55 * time.Second, []string{"fetch 2"}, Refreshing},
			{fails(2), 0, []string{"report"}, Fresh},
			{asks(2, false), 0, []string{"answer 2: a v1"}, Fresh},
			{asks(3, false), 5 * time.Second, []string{"fetch 3"}, Fetching},
		},
		"a list that nobody uses is not swept": {
			opens,
			first,
			{sweeps(1), 55 * time.Second, nil, Fresh},
			{asks(1, false), 10 * time.Second, []string{"fetch 2"}, Fetching},
			{sweeps(1), 0, nil, Fetching},
		},
		"a list whose time ends while it is fetched again is waited for": {
			opens,
			first,
			{asks(1, false), 0, []string{"answer 1: a v1"}, Fresh},
			{sweeps(1), 55 * time.Second, []string{"fetch 2"}, Refreshing},
			{asks(2, false), 10 * time.Second, nil, Fetching},
			{fetches(2, "a"), 0, []string{"answer 2: a v1", "publish v1", "sweep after 1m0s"}, Fresh},
		},
		"a stream that always ends is opened ever later, one that lasted soon": {
			opens,
			{streams, 0, nil, Fetching},
			{ends, 0, []string{"watch 1"}, Fetching},
			{streams, 0, nil, Fetching},
			{ends, time.Second, []string{"watch 2"}, Fetching},
			{streams, 0, nil, Fetching},
			{ends, time.Minute, []string{"watch 1"}, Fetching},
			{func(m *machine, now time.Time) []effect { return m.onWatchEnded(1, false, now) }, 0, nil, Fetching},
		},
		"a session that is closed ends all that hangs on it": {
			opens,
			{asks(1, false), 0, nil, Fetching},
			{closes, 0, []string{"close watch", "abandon", "fail 1: McpServerUnreachable"}, Detached},
			{fetches(1, "a"), 0, nil, Detached},
			{ends, 0, nil, Detached},
			{func(m *machine, now time.Time) []effect { return m.onSessionOpened(2, now) }, 0, []string{"fetch 2", "watch 0"}, Fetching},
			{closes, 0, nil, Fetching},
			{fetches(1, "a"), 0, nil, Fetching},
			{fetches(2, "a"), 0, []string{"publish v1", "sweep after 1m0s"}, Fresh},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, now := newMachine(time.Minute, &lineage{}), begin
			m.closed = errList
			for i, step := range steps {
				now = now.Add(step.after)
				got := told(step.does(m, now))
				slices.Sort(got)
				want := slices.Clone(step.want)
				slices.Sort(want)
				if !slices.Equal(got, want) || m.state != step.state {
					t.Fatalf("step %d: %s, %q; want %s, %q", i+1, m.state, got, step.state, want)
				}
			}
		})
	}
}

func TestTooManyAskersAreTurnedAway(t *testing.T) {
	m := newMachine(time.Minute, &lineage{})
	m.onSessionOpened(1, begin)
	for i := range maxAskers {
		m.onAsk(asked(i), false, begin)
	}
	if got := told(m.onAsk(asked(maxAskers), false, begin)); !slices.Equal(got, []string{"fail 1024: Busy"}) {
		t.Errorf("got %q", got)
	}
}

// TestAnyOrder has anything happen in any order. One fetch at most is in flight;
// each asker has one answer or waits for a fetch; and none gets a list whose fetch
// began before a change that was announced before the question.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, now := newMachine(time.Minute, &lineage{}), begin
		m.closed = errList
		questions, answers := 0, map[string]int{}
		changes, begun := 0, 0 // changes that were announced, and those before the fetch in flight
		since := map[string]int{}
		seen := map[*messages.Snapshot]int{}
		inFlight, epoch := uint64(0), uint64(0)
		take := func(effects []effect) {
			for _, one := range effects {
				switch e := one.(type) {
				case fetch:
					if inFlight != 0 {
						t.Fatal("two fetches are in flight")
					}
					inFlight, begun = e.number, changes
				case abandon:
					inFlight = 0
				case answerSnapshot:
					answers[e.asked.ID]++
					if seen[e.snapshot] < since[e.asked.ID] {
						t.Fatalf("question %s got a stale list", e.asked.ID)
					}
				case answerFailure:
					answers[e.asked.ID]++
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 8).Draw(t, "step") {
			case 0, 1:
				questions++
				since[fmt.Sprint(questions)] = changes
				take(m.onAsk(asked(questions), rapid.Bool().Draw(t, "fresh"), now))
			case 2:
				if m.state != Detached {
					changes++
				}
				take(m.onChanged(now))
			case 3:
				if number := inFlight; number != 0 {
					inFlight = 0
					snapshot := list(fmt.Sprint(begun))
					seen[snapshot] = begun
					err := rapid.SampledFrom([]error{nil, nil, errList, errors.New("odd")}).Draw(t, "err")
					take(m.onFetched(number, snapshot, nil, err, now))
				}
			case 4:
				take(m.onDue(now))
				take(m.onSweep(m.fetches, now))
			case 5:
				take(m.onWatchOpened(epoch, now))
			case 6:
				epoch++
				take(m.onSessionOpened(epoch, now))
			case 7:
				take(m.onSessionClosed(epoch, errList))
			case 8:
				take(m.onOverdue(asked(rapid.IntRange(1, questions+1).Draw(t, "which")), errList))
			}
			if m.inFlight() != (inFlight != 0) {
				t.Fatalf("the catalog is %s, and fetch %d is in flight", m.state, inFlight)
			}
		}
		for i := 1; i <= questions; i++ {
			waits := m.waits(asked(i))
			if waits && inFlight == 0 {
				t.Fatalf("question %d waits for nothing", i)
			}
			if want := map[bool]int{true: 0, false: 1}[waits]; answers[fmt.Sprint(i)] != want {
				t.Fatalf("question %d has %d answers; it waits: %v", i, answers[fmt.Sprint(i)], waits)
			}
		}
	})
}
