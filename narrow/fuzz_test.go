package narrow_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/narrow"
)

var public = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// A public name is one that every model's endpoint takes, always the same, and
// two tools of one server have one each.
func FuzzPublicName(f *testing.F) {
	for _, tool := range []string{
		"calendar.create", "a/b", "Get File", "größe", "\U0001F600", "", "__proto__", strings.Repeat("x", 65), strings.Repeat("x", 128), "a_b", "a__b", "\xff", "\x00", "list_tools",
	} {
		f.Add("github", tool, "search-a")
		f.Add("a.b-c_d", tool, tool+"_")
	}
	f.Fuzz(func(t *testing.T, server, one, other string) {
		name := narrow.PublicName(server, one)
		if !public.MatchString(name) || !narrow.Legal(name) || name != narrow.PublicName(server, one) || narrow.Reserved(name) {
			t.Fatalf("%q of %q is %q", one, server, name)
		}
		second := narrow.PublicName(server, other)
		if one != other && second == name {
			t.Fatalf("%q and %q are both %q", one, other, name)
		}
		table, err := narrow.NewTable([]narrow.Entry[string]{{Public: name, Raw: one, Payload: one}, {Public: second, Raw: other, Payload: other}})
		if conflict, ok := errors.AsType[*narrow.Conflict](err); (one == other) != ok {
			t.Fatalf("%q and %q: %v (%v)", one, other, err, conflict)
		}
		if err != nil {
			return
		}
		if got, found := table.Lookup(name); !found || got != one {
			t.Fatalf("%q leads to %q", name, got)
		}
		if near := table.Near(other, 1); len(near) > 1 {
			t.Fatalf("got %q", near)
		}
	})
}

// A grant lets through what one of its patterns matches, in whatever order they
// are written and however often.
func FuzzGrant(f *testing.F) {
	f.Add("search_*", "list", "search_issues")
	f.Add("*", "", "x")
	f.Add("a**", "*a", "a*")
	f.Fuzz(func(t *testing.T, first, second, tool string) {
		grant := narrow.Of(first, second)
		if !grant.Equal(narrow.Of(second, first, second)) {
			t.Fatalf("%q and %q are another grant in another order", first, second)
		}
		if want := narrow.Match(first, tool) || narrow.Match(second, tool); grant.Permits(tool) != want {
			t.Fatalf("%q and %q with %q", first, second, tool)
		}
		if narrow.ValidPattern(first) && !strings.HasSuffix(first, "*") && narrow.Match(first, tool) != (first == tool) {
			t.Fatalf("%q matches %q", first, tool)
		}
		planes := narrow.Planes{Tenant: grant, Spec: narrow.Of(first), Reachable: true}
		if callable, by := narrow.Callable(tool, planes); callable != (by == "") || callable && !narrow.Match(first, tool) {
			t.Fatalf("%q: %v, %q", tool, callable, by)
		}
	})
}
