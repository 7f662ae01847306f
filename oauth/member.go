package oauth

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// members is a JSON object of a stranger, read one member at a time: a member of an
// odd type counts as absent, or as what it plainly means, and spoils no other.
type members map[string]json.RawMessage

// decode reads an object; false when the bytes are none.
func decode(body []byte) (members, bool) {
	var read members
	err := json.Unmarshal(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), &read)
	return read, err == nil && read != nil
}

// text is a string; "" for anything else.
func (m members) text(name string) string {
	var value string
	if json.Unmarshal(m[name], &value) != nil {
		return ""
	}
	return value
}

// has reports whether a member is there and not null.
func (m members) has(name string) bool {
	value, found := m[name]
	return found && !bytes.Equal(value, []byte("null"))
}

// list is an array's strings, or the words of a single string; nil where there is
// neither.
func (m members) list(name string) []string {
	var words string
	if json.Unmarshal(m[name], &words) == nil && m.has(name) {
		return append([]string{}, strings.Fields(words)...)
	}
	var values []any
	if json.Unmarshal(m[name], &values) != nil || values == nil {
		return nil
	}
	list := []string{}
	for _, value := range values {
		if text, ok := value.(string); ok && text != "" {
			list = append(list, text)
		}
	}
	return list
}

// flag is a boolean, or the word of one.
func (m members) flag(name string) bool {
	switch strings.ToLower(strings.Trim(string(m[name]), `"`)) {
	case "true":
		return true
	}
	return false
}

// maxSeconds is the largest number of seconds that a time.Duration and a year of
// four digits both hold.
const maxSeconds = 8_000_000_000

// seconds is a number, whole or not, or the text of one; 0 for anything else and
// for what is negative or no number.
func (m members) seconds(name string) float64 {
	text := strings.Trim(strings.TrimSpace(string(m[name])), `" `)
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(value, 1) || math.IsNaN(value) || value < 0 {
		return 0
	}
	return min(value, maxSeconds)
}

// lifetime is a number of seconds as a duration.
func (m members) lifetime(name string) time.Duration {
	return time.Duration(m.seconds(name) * float64(time.Second))
}

// moment is a number of seconds since 1970 as a time; zero for 0 (RFC 7591 section
// 3.2.1: does not expire).
func (m members) moment(name string) time.Time {
	seconds := m.seconds(name)
	if seconds < 1 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

// scopeTokens keeps what may stand in a scope parameter (RFC 6749 section 3.3).
func scopeTokens(words []string) []string {
	if words == nil {
		return nil
	}
	kept := make([]string, 0, len(words))
	for _, word := range words {
		if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			kept = append(kept, word)
		}
	}
	return kept
}
