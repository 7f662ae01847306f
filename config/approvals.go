package config

import (
	"strings"

	"github.com/psych-systems/psych-go/document"
	"github.com/psych-systems/psych-go/narrow"
)

func (a Approvals) validate(found *document.Problems) {
	for i, selector := range a.Selectors {
		switch selector {
		case "@read-only", "@write", "@destructive":
		default:
			found.Add(document.Index("$.approvals.selectors", i), "the approval selector %.80q is none of @read-only, @write and @destructive", selector)
		}
	}
	validatePublicPatterns("$.approvals.always", a.Always, found)
	validatePublicPatterns("$.approvals.never", a.Never, found)
}

// validatePublicPatterns refuses what can match no public name: a rule that
// holds nothing is a rule that somebody relies on in vain.
func validatePublicPatterns(path string, patterns []string, found *document.Problems) {
	for i, pattern := range patterns {
		if stem := strings.TrimSuffix(pattern, "*"); pattern != "*" && !narrow.Legal(stem) {
			found.Add(document.Index(path, i), "the approval pattern %.80q must be a public name such as github__search, of at most %d letters, digits, \"_\" and \"-\", or how one begins with a \"*\" at its end", pattern, narrow.MaxName)
		}
	}
}
