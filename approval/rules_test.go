package approval_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/approval"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/narrow"
)

func TestHold(t *testing.T) {
	for _, test := range []struct {
		name    string
		rules   approval.Rules
		public  string
		class   narrow.Class
		because string
	}{
		{"read-only is free by default", approval.Rules{}, "a__x", narrow.ReadOnly, ""},
		{"write is held by default", approval.Rules{}, "a__x", narrow.Write, "the selector @write"},
		{"destructive is held by default", approval.Rules{}, "a__x", narrow.Destructive, "the selector @destructive"},
		{"an unknown class is destructive", approval.Rules{}, "a__x", "odd", "the selector @destructive"},
		{"no class is destructive", approval.Rules{Selectors: []string{"@destructive"}}, "a__x", "", "the selector @destructive"},
		{"empty selectors hold nothing", approval.Rules{Selectors: []string{}}, "a__x", narrow.Destructive, ""},
		{"always holds the harmless", approval.Rules{Always: []string{"a__*"}}, "a__x", narrow.ReadOnly, "the rule always: a__*"},
		{"never has the last word", approval.Rules{Always: []string{"a__x"}, Never: []string{"a__*"}}, "a__x", narrow.Destructive, ""},
	} {
		held, because := test.rules.Hold(test.public, test.class)
		if because != test.because || held != (because != "") {
			t.Errorf("%s: got %v, %q", test.name, held, because)
		}
	}
}

func TestBadRulesAreTold(t *testing.T) {
	for _, rules := range []approval.Rules{
		{Selectors: []string{"@all"}}, {Always: []string{""}}, {Never: []string{"a*b"}},
	} {
		if failure.KindOf(rules.Check()) != failure.KindSpecInvalid {
			t.Errorf("%+v passes", rules)
		}
	}
	if err := (approval.Rules{Selectors: []string{"@read-only"}, Always: []string{"*"}}).Check(); err != nil {
		t.Error(err)
	}
}

func TestTheZeroValueHoldsAllThatIsNotReadOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		public, class := rapid.String().Draw(t, "name"), narrow.Class(rapid.String().Draw(t, "class"))
		if held, _ := (approval.Rules{}).Hold(public, class); held != (class != narrow.ReadOnly) {
			t.Fatalf("%q of class %q: held is %v", public, class, held)
		}
	})
}
