package narrow

import (
	"slices"
	"strings"
)

// Grant is a set of tool names that one plane lets through. Its zero value lets
// nothing through.
type Grant struct {
	all bool
	// patterns is sorted and without duplicates.
	patterns []string
}

// All lets every tool through.
func All() Grant { return Grant{all: true} }

// None lets no tool through.
func None() Grant { return Grant{} }

// Of lets through the names that match one of the patterns: exactly, or up to a
// trailing "*". Without patterns it lets nothing through.
func Of(patterns ...string) Grant {
	sorted := slices.Clone(patterns)
	slices.Sort(sorted)
	return Grant{patterns: slices.Compact(sorted)}
}

// Permits reports whether a server's own tool name is in the grant.
func (g Grant) Permits(name string) bool {
	return g.all || slices.ContainsFunc(g.patterns, func(pattern string) bool { return Match(pattern, name) })
}

// Patterns returns the grant's patterns, sorted; none for [All] and [None].
func (g Grant) Patterns() []string { return slices.Clone(g.patterns) }

// Equal reports whether two grants are made of the same patterns.
func (g Grant) Equal(other Grant) bool {
	return g.all == other.all && slices.Equal(g.patterns, other.patterns)
}

// Match reports whether a name matches a pattern: exactly, or by its beginning
// when the pattern ends in "*".
func Match(pattern, name string) bool {
	if prefix, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// ValidPattern reports whether a pattern is one that [Match] takes as meant: not
// empty, with at most one "*", at its end.
func ValidPattern(pattern string) bool {
	return pattern != "" && !strings.Contains(strings.TrimSuffix(pattern, "*"), "*")
}
