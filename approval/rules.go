package approval

import (
	"fmt"
	"slices"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/narrow"
)

// defaultSelectors hold every call that may change something.
var defaultSelectors = []string{"@write", "@destructive"}

var classes = map[string]narrow.Class{
	"@read-only":   narrow.ReadOnly,
	"@write":       narrow.Write,
	"@destructive": narrow.Destructive,
}

// Rules decide which calls are held. The zero value holds every call of a tool
// that writes or destroys.
type Rules struct {
	// Selectors hold by class: @read-only, @write, @destructive. Nil is @write
	// and @destructive; empty holds nothing.
	Selectors []string
	// Always holds the public names that match, exactly or up to a trailing "*".
	Always []string
	// Never holds none of the public names that match; it has the last word.
	Never []string
}

// Check reports a selector or a pattern that cannot be used, as
// [failure.SpecInvalid].
func (r Rules) Check() error {
	for _, selector := range r.Selectors {
		if _, known := classes[selector]; !known {
			return failure.New(failure.KindSpecInvalid, fmt.Sprintf(
				"the approval selector %q is none of @read-only, @write, @destructive", selector), nil)
		}
	}
	for _, pattern := range slices.Concat(r.Always, r.Never) {
		if !narrow.ValidPattern(pattern) {
			return failure.New(failure.KindSpecInvalid, fmt.Sprintf(
				"the approval pattern %q must be a public name, or the beginning of one with a \"*\" at its end", pattern), nil)
		}
	}
	return nil
}

// Hold decides over a tool by its public name and class, and says what holds
// it. A class that is none of the known ones counts as destructive.
func (r Rules) Hold(public string, class narrow.Class) (held bool, because string) {
	if matched(r.Never, public) != "" {
		return false, ""
	}
	if pattern := matched(r.Always, public); pattern != "" {
		return true, fmt.Sprintf("the rule always: %s", pattern)
	}
	selectors := r.Selectors
	if selectors == nil {
		selectors = defaultSelectors
	}
	for _, selector := range selectors {
		if classes[selector] == known(class) {
			return true, "the selector " + selector
		}
	}
	return false, ""
}

func known(class narrow.Class) narrow.Class {
	switch class {
	case narrow.ReadOnly, narrow.Write:
		return class
	default:
		return narrow.Destructive
	}
}

func matched(patterns []string, public string) string {
	for _, pattern := range patterns {
		if narrow.Match(pattern, public) {
			return pattern
		}
	}
	return ""
}
