package oauth

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode"

	"github.com/psych-systems/psych-go/secret"
)

const (
	// maxServerText bounds, in runes, what a sentence repeats of a server's words.
	maxServerText = 200
	// maxShownURL bounds, in runes, a URL in a sentence.
	maxShownURL = 300
	// maxCode bounds, in bytes, an error code.
	maxCode = 64
)

// excerpt is a stranger's text, fit for a sentence: one line of at most limit
// runes, without control and formatting characters and without punctuation at its
// end that leads nowhere.
func excerpt(text string, limit int) string {
	cleaned := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	runes := []rune(strings.Join(strings.Fields(cleaned), " "))
	if len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return strings.TrimRight(string(runes), ": ")
}

// concealed takes this client's own secrets out of a server's text, in each form
// in which a request held them. It comes before any cut, which would leave a part.
func concealed(text string, secrets []secret.Text) string {
	for _, one := range secrets {
		value := one.Reveal()
		if value == "" {
			continue
		}
		for _, form := range []string{value, url.QueryEscape(value), url.PathEscape(value), base64.StdEncoding.EncodeToString([]byte(value))} {
			text = strings.ReplaceAll(text, form, "[redacted]")
		}
	}
	return text
}

// codeOf is an error code as it may be shown and compared (RFC 6749 section 5.2
// allows printable ASCII without quotes and backslashes).
func codeOf(text string, secrets []secret.Text) string {
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, concealed(text, secrets))
	return strings.TrimRight(text[:min(len(text), maxCode)], ":")
}
