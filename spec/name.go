package spec

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	namePattern       = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.-]{0,127}$`)
	credentialPattern = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9_./-]{0,127}$`)
)

const (
	nameRule       = `must begin with a letter or "_" and have at most 128 letters, digits, "_", "." and "-"`
	credentialRule = `must be a credential's name, of at most 128 letters, digits, "_", ".", "/" and "-", and never its value`
)

// AliasFault says what keeps a text from being the alias of a server, in words
// that follow on it; "" when nothing does.
func AliasFault(alias string) string {
	switch {
	case !namePattern.MatchString(alias):
		return nameRule
	case strings.Contains(alias, "__"):
		return `must not have "__" in it, which divides server and tool`
	case strings.HasSuffix(alias, "_"):
		return `must not end in "_", because "__" follows it in the names of tools`
	default:
		return ""
	}
}

// CredentialFault says what keeps a text from being the name of a credential, in
// words that follow on the field's name; "" when nothing does. The text may be a
// secret that stands where its name belongs: no sentence repeats it.
func CredentialFault(name string) string {
	if credentialPattern.MatchString(name) {
		return ""
	}
	return credentialRule
}

// printable reports whether a text is UTF-8 without control characters, except
// those that are listed.
func printable(text, except string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune(except, r)
	})
}
