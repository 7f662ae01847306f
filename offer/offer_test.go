package offer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/narrow"
	"github.com/psych-systems/psych-go/offer"
)

func snapshot(etag string, names ...string) *messages.Snapshot {
	made := &messages.Snapshot{Etag: etag}
	for _, name := range names {
		made.Tools = append(made.Tools, &messages.Tool{Name: name, Description: "Does " + name, Class: "read-only", Chars: 100})
	}
	return made
}

func all(string) narrow.Grant { return narrow.All() }

func server(alias string, of *messages.Snapshot) offer.Server {
	return offer.Server{Alias: alias, Snapshot: of, Tenant: narrow.All(), Spec: narrow.All()}
}

func TestATurnInWhichNothingChangedIsTheSameOfferAndAllocatesNothingForIt(t *testing.T) {
	var names []string
	for i := range 351 {
		names = append(names, fmt.Sprint("tool", i))
	}
	servers := []offer.Server{server("a", snapshot("1", names...)), server("b", snapshot("2", "x"))}
	first, err := offer.Resolve(nil, servers, nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if allocated := testing.AllocsPerRun(100, func() {
		if again, err := offer.Resolve(first, servers, nil, 1000); again != first || err != nil {
			t.Error("the offer was made again")
		}
	}); allocated > 2 {
		t.Errorf("%v allocations", allocated)
	}
	for what, change := range map[string]func(*offer.Server){
		"tools":        func(s *offer.Server) { s.Snapshot = snapshot("3", "y") },
		"instructions": func(s *offer.Server) { s.Snapshot = &messages.Snapshot{Etag: "2", Instructions: "new"} },
		"reach":        func(s *offer.Server) { s.Snapshot, s.Unreachable = nil, fmt.Errorf("away") },
		"tenant":       func(s *offer.Server) { s.Tenant = narrow.None() },
		"spec":         func(s *offer.Server) { s.Spec = narrow.Of("y") },
		"preload":      func(s *offer.Server) { s.Preload = new(true) },
		"description":  func(s *offer.Server) { s.Description = "new" },
	} {
		changed := slices.Clone(servers)
		change(&changed[1])
		if again, err := offer.Resolve(first, changed, nil, 1000); again == first || err != nil {
			t.Errorf("a change of %s is not seen (%v)", what, err)
		}
	}
}

func TestDescriptionsAreOneLineOfAtMost400Characters(t *testing.T) {
	long := server("a", snapshot("1", "x"))
	long.Description = strings.Repeat("ä\n", 500)
	own := server("b", snapshot("2", "x"))
	own.Snapshot.Instructions = "From the\r\n server."
	away := offer.Server{Alias: "c", Unreachable: failure.New(failure.KindMcpServerUnreachable, "it is away", nil)}
	made, err := offer.Resolve(nil, []offer.Server{long, own, away}, nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(made.Lines, "\n")
	if len(lines) != 4 || len([]rune(lines[1])) != len("- a: ")+400 || lines[2] != "- b: From the server." ||
		lines[3] != "- c: unavailable, its tools cannot be used now: it is away" {
		t.Errorf("the model is told %q", lines)
	}
}

func TestBuiltInNamesAreReservedAcrossHostToolsAndServers(t *testing.T) {
	_, err := offer.Resolve(nil, []offer.Server{server("a", snapshot("1", "x"))},
		[]offer.HostTool{{Name: "a__x"}}, 1000)
	if failure.KindOf(err) != failure.KindNameConflict || !strings.Contains(err.Error(), `"x" of server "a" and "a__x" of a host tool`) {
		t.Errorf("got %v", err)
	}
	_, err = offer.Resolve(nil, []offer.Server{server("a", snapshot("1", "x"))},
		[]offer.HostTool{{Name: "list_tools"}}, 1)
	if failure.KindOf(err) != failure.KindNameConflict || !strings.Contains(err.Error(), "built-in") {
		t.Errorf("got %v", err)
	}
}

// TestWhatIsRoutedIsWhatNarrowingPermits holds showing, listing and calling
// against the one function, for any planes.
func TestWhatIsRoutedIsWhatNarrowingPermits(t *testing.T) {
	names := []string{"find", "list_all", "list_own", "drop", "größe", ""}
	patterns := rapid.SliceOf(rapid.SampledFrom([]string{"find", "list_*", "drop", "*", "g*"}))
	rapid.Check(t, func(t *rapid.T) {
		one := server("crm", snapshot("1", names...))
		one.Tenant, one.Spec = narrow.Of(patterns.Draw(t, "tenant")...), narrow.Of(patterns.Draw(t, "spec")...)
		one.Preload = new(rapid.Bool().Draw(t, "preload"))
		made, err := offer.Resolve(nil, []offer.Server{one}, nil, 1000)
		if err != nil {
			t.Fatal(err)
		}
		now := narrow.Of(patterns.Draw(t, "tenant at the call")...)
		tenant := func(string) narrow.Grant { return now }
		for _, name := range names {
			before, _ := narrow.Callable(name, narrow.Planes{Tenant: one.Tenant, Spec: one.Spec, Reachable: true})
			after, _ := narrow.Callable(name, narrow.Planes{Tenant: now, Spec: one.Spec, Reachable: true})
			public := narrow.PublicName("crm", name)
			shown := slices.ContainsFunc(made.Recorded, func(row journal.OfferedTool) bool { return row.Name == public })
			if shown != (before && *one.Preload) {
				t.Fatalf("%q is shown: %v", name, shown)
			}
			if _, err := made.Route(public, "{}", tenant); (err == nil) != (before && after && *one.Preload) {
				t.Fatalf("a direct call of %q: %v", name, err)
			}
			if *one.Preload {
				continue
			}
			door := fmt.Sprintf(`{"server":"crm","tool":%q}`, name)
			for _, built := range []string{narrow.CallTool, narrow.GetToolInfo} {
				_, err := made.Route(built, door, tenant)
				if callable := before && after; (err == nil) != callable {
					t.Fatalf("%s of %q, callable %v: %v", built, name, callable, err)
				}
			}
		}
	})
}

func TestArgumentsOfBuiltInsAreChecked(t *testing.T) {
	one := server("crm", snapshot("1", "find"))
	one.Preload = new(false)
	made, err := offer.Resolve(nil, []offer.Server{one}, nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []struct{ name, arguments string }{
		{"list_tools", `{"offset":"x"}`}, {"get_tool_info", `{"server":1}`}, {"call_tool", `[]`},
		{"call_tool", `{"server":"crm","tool":"find","arguments":[1]}`},
		{"call_tool", `{"server":"crm","tool":"find","arguments":"{}"}`},
	} {
		if _, err := made.Route(call.name, call.arguments, all); failure.KindOf(err) != failure.KindInvalidArguments {
			t.Errorf("%s %s: got %v", call.name, call.arguments, err)
		}
	}
	for _, arguments := range []string{`{"offset":-5}`, `{"offset":99}`, `{}`} {
		if _, err := made.Route("list_tools", arguments, all); err != nil {
			t.Errorf("list_tools %s: %v", arguments, err)
		}
	}
}

func FuzzRouteNeverPanics(f *testing.F) {
	f.Add("crm__find", `{"a":1}`)
	f.Add("call_tool", `{"server":"crm","tool":"find","arguments":{}}`)
	f.Add("list_tools", `{"search":"x","offset":-1}`)
	one := server("crm", snapshot("1", "find", "other"))
	one.Preload = new(false)
	made, err := offer.Resolve(nil, []offer.Server{one, server("b", snapshot("2", "x"))}, nil, 1000)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, arguments string) {
		if _, err := made.Route(name, arguments, all); err != nil && len(err.Error()) > 2000 {
			t.Fatalf("the echo is not bounded: %d", len(err.Error()))
		}
	})
}
