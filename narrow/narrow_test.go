package narrow_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/narrow"
)

func yes() *bool { v := true; return &v }
func no() *bool  { v := false; return &v }

func TestClassOf(t *testing.T) {
	for name, test := range map[string]struct {
		annotations *narrow.Annotations
		want        narrow.Class
	}{
		"none":                       {nil, narrow.Write},
		"present and empty":          {&narrow.Annotations{}, narrow.Destructive},
		"read-only":                  {&narrow.Annotations{ReadOnly: yes()}, narrow.ReadOnly},
		"read-only and destructive":  {&narrow.Annotations{ReadOnly: yes(), Destructive: yes()}, narrow.ReadOnly},
		"not read-only":              {&narrow.Annotations{ReadOnly: no()}, narrow.Destructive},
		"not destructive":            {&narrow.Annotations{Destructive: no()}, narrow.Write},
		"destructive":                {&narrow.Annotations{Destructive: yes()}, narrow.Destructive},
		"idempotent, silent on harm": {&narrow.Annotations{Idempotent: yes()}, narrow.Destructive},
	} {
		if got := narrow.ClassOf(test.annotations); got != test.want {
			t.Errorf("%s is %s, want %s", name, got, test.want)
		}
	}
}

func TestTheWidestPlaneThatTakesAToolAwayIsNamed(t *testing.T) {
	open := narrow.Planes{Tenant: narrow.All(), Spec: narrow.Of("find", "list_*"), Reachable: true}
	closed, unreachable, withheld := open, open, open
	closed.Tenant = narrow.None()
	unreachable.Reachable = false
	withheld.Withheld = narrow.Of("find")
	for _, test := range []struct {
		tool   string
		planes narrow.Planes
		want   narrow.Plane
	}{
		{"find", open, ""},
		{"list_all", open, ""},
		{"lists", open, narrow.PlaneSpec},
		{"find", closed, narrow.PlaneTenant},
		{"find", unreachable, narrow.PlaneUnreachable},
		{"find", withheld, narrow.PlaneWithheld},
		{"drop", narrow.Planes{}, narrow.PlaneTenant},
	} {
		ok, plane := narrow.Callable(test.tool, test.planes)
		if plane != test.want || ok != (test.want == "") {
			t.Errorf("%s: got %v, %q; want %q", test.tool, ok, plane, test.want)
		}
	}
}

func TestPublicNames(t *testing.T) {
	long := strings.Repeat("x", 128)
	for _, test := range []struct{ server, tool, want string }{
		{"github", "search_issues", "github__search_issues"},
		{"docs", "list-repos", "docs__list-repos"},
		{strings.Repeat("s", 40), "find", strings.Repeat("s", 40) + "__find"},
		{"github", "calendar.create", `^github__calendar_create_[0-9a-f]{10}$`},
		{"git.hub", "find", `^git_hub__find_[0-9a-f]{10}$`},
		{"github", "", `^github___[0-9a-f]{10}$`},
		{"github", "größe", `^github__gr__e_[0-9a-f]{10}$|^github__gr____e_[0-9a-f]{10}$`},
		{"github", long, `^github__x{45}_[0-9a-f]{10}$`},
		{long, long, `^x{24}__x{27}_[0-9a-f]{10}$`},
		{"github", "__proto__", "github____proto__"},
	} {
		got := narrow.PublicName(test.server, test.tool)
		if got != test.want && (!strings.HasPrefix(test.want, "^") || !regexp.MustCompile(test.want).MatchString(got)) {
			t.Errorf("%q of %q is %q, want %q", test.tool, test.server, got, test.want)
		}
	}
}

func alias() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-zA-Z_][a-zA-Z0-9_.-]{0,127}`).Filter(func(s string) bool {
		return !strings.Contains(s, "__") && !strings.HasSuffix(s, "_")
	})
}

func TestPublicNamesAreLegalStableAndUnique(t *testing.T) {
	legal := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	rapid.Check(t, func(t *rapid.T) {
		type tool struct{ server, name string }
		names := map[string]tool{}
		servers := rapid.SliceOfN(alias(), 1, 4).Draw(t, "servers")
		for range rapid.IntRange(1, 30).Draw(t, "tools") {
			one := tool{rapid.SampledFrom(servers).Draw(t, "server"), rapid.OneOf(rapid.String(),
				rapid.StringMatching(`[ab._-]{0,3}`), rapid.StringMatching(`[a-z]{60,130}`)).Draw(t, "name")}
			public := narrow.PublicName(one.server, one.name)
			if !legal.MatchString(public) || !narrow.Legal(public) {
				t.Fatalf("%q is no legal name", public)
			}
			if public != narrow.PublicName(one.server, one.name) {
				t.Fatalf("%+v has two names", one)
			}
			if other, taken := names[public]; taken && other != one {
				t.Fatalf("%+v and %+v share the name %q", one, other, public)
			}
			names[public] = one
		}
	})
}

func TestNarrowingNeverAddsAndNeverWidens(t *testing.T) {
	names := rapid.StringMatching(`[ab]{0,4}`)
	grant := rapid.Custom(func(t *rapid.T) narrow.Grant {
		if rapid.IntRange(0, 3).Draw(t, "all") == 0 {
			return narrow.All()
		}
		return narrow.Of(rapid.SliceOfN(rapid.StringMatching(`[ab]{0,2}\*?`), 0, 4).Draw(t, "patterns")...)
	})
	rapid.Check(t, func(t *rapid.T) {
		planes := narrow.Planes{
			Tenant: grant.Draw(t, "tenant"), Spec: grant.Draw(t, "spec"),
			Reachable: rapid.Bool().Draw(t, "reachable"), Withheld: grant.Draw(t, "withheld"),
		}
		shrunk := map[string]narrow.Planes{}
		for _, plane := range []string{"tenant", "spec", "reachable", "withheld"} {
			smaller := planes
			switch plane {
			case "tenant":
				smaller.Tenant = without(planes.Tenant)
			case "spec":
				smaller.Spec = without(planes.Spec)
			case "reachable":
				smaller.Reachable = false
			case "withheld":
				smaller.Withheld = narrow.Of(append(planes.Withheld.Patterns(), "a*")...)
				if planes.Withheld.Equal(narrow.All()) {
					smaller.Withheld = narrow.All()
				}
			}
			shrunk[plane] = smaller
		}
		for _, tool := range rapid.SliceOf(names).Draw(t, "tools") {
			ok, _ := narrow.Callable(tool, planes)
			if ok && (!planes.Tenant.Permits(tool) || !planes.Spec.Permits(tool) || !planes.Reachable || planes.Withheld.Permits(tool)) {
				t.Fatalf("%q passes a plane that is closed", tool)
			}
			for plane, smaller := range shrunk {
				if still, _ := narrow.Callable(tool, smaller); still && !ok {
					t.Fatalf("%q became callable when the plane %s shrank", tool, plane)
				}
			}
		}
	})
}

// without is a grant less its first pattern.
func without(grant narrow.Grant) narrow.Grant {
	if patterns := grant.Patterns(); len(patterns) > 0 {
		return narrow.Of(patterns[1:]...)
	}
	return narrow.None()
}

func TestATableNamesBothToolsOfAConflict(t *testing.T) {
	_, err := narrow.NewTable([]narrow.Entry[int]{
		{Public: "a__x", Owner: `server "a"`, Raw: "x"},
		{Public: "a__x", Owner: "a host tool", Raw: "a__x"},
	})
	var conflict *narrow.Conflict
	if !errors.As(err, &conflict) || conflict.First != `"x" of server "a"` || conflict.Second != `"a__x" of a host tool` {
		t.Fatalf("got %v", err)
	}
}

func TestNearNames(t *testing.T) {
	table, err := narrow.NewTable([]narrow.Entry[int]{
		{Public: "github__search_issues"}, {Public: "github__search_users"}, {Public: "crm__find"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if near := table.Near("github_search_issue", 3); !slices.Equal(near, []string{"github__search_issues", "github__search_users"}) {
		t.Errorf("near are %q", near)
	}
	if near := table.Near(strings.Repeat("z", 10_000), 3); near != nil {
		t.Errorf("near are %q", near)
	}
}

func TestDefer(t *testing.T) {
	for _, test := range []struct {
		preload       *bool
		chars, budget int
		want          bool
	}{
		{nil, 20_000, 20_000, false}, {nil, 20_001, 20_000, true},
		{yes(), 1 << 20, 1, false}, {no(), 1, 1 << 20, true},
	} {
		if got := narrow.Defer(test.preload, test.chars, test.budget); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}
