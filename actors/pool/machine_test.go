package pool

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func keyOf(t testing.TB, tenant, server string) messages.PoolKey {
	t.Helper()
	key, err := messages.NewPoolKey(messages.Scope{Tenant: tenant}, "https://"+server+"/", messages.TransportHTTP, "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func question(id string) held {
	return held{asked: supervision.Asked{Asker: "run", ID: id}, question: true, target: &messages.Target{Server: "crm"}}
}

func notice() held {
	return held{asked: supervision.Asked{Asker: "run"}, target: &messages.Target{Server: "crm"}}
}

// told are effects in words; names are by id.
func told(effects []effect, names map[string]string) []string {
	var words []string
	for _, one := range effects {
		switch e := one.(type) {
		case spawn:
			words = append(words, "spawn "+names[e.key.Digest()])
		case stop:
			words = append(words, "stop "+names[e.id])
		case route:
			words = append(words, fmt.Sprintf("route %s to %s", e.asked.ID, names[e.id]))
		case refuse:
			words = append(words, fmt.Sprintf("refuse %s: %s", e.asked.ID, failure.KindOf(e.why)))
		case answer:
			words = append(words, fmt.Sprintf("answer %s: %d", e.asked.ID, e.answer.(*messages.Disconnected).GetClosed()))
		}
	}
	return words
}

// desk is a machine whose keys have names.
type desk struct {
	*machine
	keys  map[string]messages.PoolKey
	names map[string]string
}

func deskOf(t testing.TB, limit int, names ...string) *desk {
	d := &desk{newMachine(limit), map[string]messages.PoolKey{}, map[string]string{}}
	for _, name := range names {
		key := keyOf(t, name[:1], "host"+name[1:])
		d.keys[name], d.names[key.Digest()] = key, name
	}
	return d
}

func (d *desk) id(name string) string { return d.keys[name].Digest() }

func (d *desk) route(name string, one held, now time.Time) []string {
	return told(d.onRouted(d.keys[name], one, now), d.names)
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMessagesForAStoppingConnectionGoToItsSuccessorInOrder(t *testing.T) {
	d := deskOf(t, 2, "a1")
	expect(t, d.route("a1", question("1"), begin), "spawn a1", "route 1 to a1")
	expect(t, told(d.onIdle(d.id("a1"), 0), d.names)) // one message is on its way
	expect(t, told(d.onIdle(d.id("a1"), 1), d.names), "stop a1")
	expect(t, told(d.onIdle(d.id("a1"), 1), d.names))
	expect(t, d.route("a1", question("2"), begin))
	expect(t, d.route("a1", notice(), begin))
	expect(t, d.route("a1", question("3"), begin))
	expect(t, told(d.onEnded(d.id("a1"), begin), d.names), "spawn a1", "route 2 to a1", "route  to a1", "route 3 to a1")
	expect(t, told(d.onIdle(d.id("a1"), 3), d.names), "stop a1")
}

func TestMessagesThatNobodyWaitsForMakeNoConnection(t *testing.T) {
	d := deskOf(t, 2, "a1")
	expect(t, d.route("a1", notice(), begin))
	d.route("a1", question("1"), begin)
	d.onIdle(d.id("a1"), 1)
	d.route("a1", notice(), begin)
	expect(t, told(d.onEnded(d.id("a1"), begin), d.names))
	expect(t, told(d.onEnded(d.id("a1"), begin), d.names))
}

func TestWhatWaitsForASuccessorIsBounded(t *testing.T) {
	d := deskOf(t, 2, "a1")
	d.route("a1", question("1"), begin)
	d.onIdle(d.id("a1"), 1)
	for range maxHeld {
		d.route("a1", question("x"), begin)
	}
	expect(t, d.route("a1", question("2"), begin), "refuse 2: Busy")
}

func TestAFullPoolMakesRoomFromTheSameTenantFirst(t *testing.T) {
	d := deskOf(t, 3, "b1", "a1", "a2", "a3", "c1")
	d.route("b1", question("1"), begin)
	d.route("a1", question("2"), begin.Add(time.Second))
	d.route("a2", question("3"), begin.Add(2*time.Second))
	now := begin.Add(time.Minute)
	expect(t, d.route("a3", question("4"), now), "stop a1", "spawn a3", "route 4 to a3")
	expect(t, d.route("c1", question("5"), now), "stop b1", "spawn c1", "route 5 to c1")
	// What was stopped is not counted, nor does it make room twice.
	expect(t, d.route("b1", question("6"), now))
	expect(t, told(d.onEnded(d.id("b1"), now), d.names), "stop a2", "spawn b1", "route 6 to b1")
}

func TestAConnectionInUseMakesNoRoom(t *testing.T) {
	for name, status := range map[string]*messages.ConnectionStatus{
		"a call is in flight": {State: "ready", CallsInFlight: 1},
		"a call waits":        {State: "backing-off", CallsWaiting: 1},
		"it is connecting":    {State: "connecting"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deskOf(t, 1, "a1", "a2")
			d.route("a1", question("1"), begin)
			expect(t, d.route("a2", question("2"), begin), "refuse 2: Busy") // it was used just now
			status.Id = d.id("a1")
			d.onStatus(status)
			expect(t, d.route("a2", question("3"), begin.Add(time.Hour)), "refuse 3: Busy")
			d.onStatus(&messages.ConnectionStatus{Id: d.id("a1"), State: "ready"})
			expect(t, d.route("a2", question("4"), begin.Add(time.Hour)), "stop a1", "spawn a2", "route 4 to a2")
		})
	}
}

func TestDisconnectIsAnsweredOnceAllHaveEnded(t *testing.T) {
	d := deskOf(t, 10, "a1", "a2", "b1")
	for name := range d.keys {
		d.route(name, question(name), begin)
	}
	d.onIdle(d.id("a1"), 1) // one is stopping already
	asked := func(id string) supervision.Asked { return supervision.Asked{Asker: "cli", ID: id} }
	expect(t, told(d.onDisconnect(asked("none"), &messages.Disconnect{Tenant: "z"}), d.names), "answer none: 0")
	expect(t, told(d.onDisconnect(asked("one"), &messages.Disconnect{Tenant: "a", Url: "https://host1/"}), d.names))
	expect(t, told(d.onDisconnect(asked("all"), &messages.Disconnect{Tenant: "a"}), d.names), "stop a2")
	expect(t, told(d.onEnded(d.id("a1"), begin), d.names), "answer one: 1")
	expect(t, told(d.onEnded(d.id("a2"), begin), d.names), "answer all: 2")
	if d.byID[d.id("b1")].state != Running {
		t.Error("another tenant's connection was stopped")
	}
}

func TestAConnectionThatWasGivenUpStaysVisibleUntilItIsUsedAgain(t *testing.T) {
	d := deskOf(t, 2, "a1")
	d.route("a1", question("1"), begin)
	d.onRestarted(d.id("a1"))
	d.onStatus(&messages.ConnectionStatus{Id: d.id("a1"), Key: d.keys["a1"].Message(), State: "ready", Server: "crm"})
	if list := d.list("a"); len(list) != 1 || list[0].GetRestarts() != 1 {
		t.Errorf("listed is %v", list)
	}
	d.onGaveUp(d.id("a1"))
	d.onEnded(d.id("a1"), begin)
	list := d.list("a")
	if len(list) != 1 || list[0].GetState() != "closed" || list[0].GetLastError() == "" || list[0].GetServer() != "crm" || list[0].GetRestarts() != 1 {
		t.Errorf("listed is %v", list)
	}
	if len(d.list("b")) != 0 || len(d.list("")) != 1 {
		t.Error("the list is not of the tenant")
	}
	d.route("a1", question("2"), begin)
	if list := d.list("a"); len(list) != 1 || list[0].GetState() != "idle" {
		t.Errorf("listed is %v", list)
	}
}

// TestTheCapHolds has anything happen in any order: no more connections run than
// the pool may hold, one of a key at most, and every question is routed or refused
// once, or waits for a connection that is stopping.
func TestTheCapHolds(t *testing.T) {
	names := []string{"a1", "a2", "b1", "b2", "c1"}
	rapid.Check(t, func(r *rapid.T) {
		d := deskOf(t, rapid.IntRange(1, 3).Draw(r, "limit"), names...)
		now, made, settled := begin, 0, map[string]int{}
		alive := map[string]bool{}
		take := func(effects []effect) {
			for _, one := range effects {
				switch e := one.(type) {
				case spawn:
					if alive[e.key.Digest()] {
						r.Fatal("a key has two connections")
					}
					alive[e.key.Digest()] = true
				case route:
					if !alive[e.id] {
						r.Fatal("a message was routed to nobody")
					}
					settled[e.asked.ID]++
				case refuse:
					settled[e.asked.ID]++
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(r, "ms")) * time.Millisecond)
			name := rapid.SampledFrom(names).Draw(r, "name")
			found, known := d.byID[d.id(name)]
			switch rapid.IntRange(0, 5).Draw(r, "step") {
			case 0, 1:
				made++
				take(d.onRouted(d.keys[name], question(fmt.Sprint(made)), now))
			case 2:
				if known {
					take(d.onIdle(d.id(name), found.routed))
				}
			case 3:
				if known && found.state == Stopping {
					delete(alive, found.id)
					take(d.onEnded(found.id, now))
				}
			case 4:
				d.onGaveUp(d.id(name))
			case 5:
				take(d.onDisconnect(supervision.Asked{ID: "d"}, &messages.Disconnect{Tenant: name[:1]}))
			}
			running, waiting := 0, map[string]bool{}
			for _, one := range d.entries {
				if one.state == Running {
					running++
				}
				for _, h := range one.held {
					waiting[h.asked.ID] = true
				}
			}
			if running > d.max || running != len(d.entries)-d.stopping {
				r.Fatalf("%d connections run, of %d at most", running, d.max)
			}
			for i := 1; i <= made; i++ {
				id := fmt.Sprint(i)
				if want := map[bool]int{true: 0, false: 1}[waiting[id]]; settled[id] != want {
					r.Fatalf("question %s is settled %d times; it waits: %v", id, settled[id], waiting[id])
				}
			}
		}
	})
}
