package oauth

import (
	"slices"
	"strings"
)

const (
	// maxFieldBytes bounds what is read of one field.
	maxFieldBytes = 16 << 10
	// maxFields, maxChallenges and maxParams bound what is kept.
	maxFields, maxChallenges, maxParams = 32, 32, 32
)

// Challenge is one challenge of a WWW-Authenticate field (RFC 9110 section 11.6.1).
type Challenge struct {
	// Scheme is in lower case.
	Scheme string
	// Params has names in lower case and values without quotes and escapes. Of a
	// parameter that is repeated the first one counts. nil where there are none.
	Params map[string]string
}

// ResourceMetadata is the URL of the resource's metadata (RFC 9728 section 5.1);
// "" where the challenge names none.
func (c Challenge) ResourceMetadata() string { return c.Params["resource_metadata"] }

// Scopes are the scopes that the request needs (RFC 6750 section 3); nil where the
// challenge names none.
func (c Challenge) Scopes() []string {
	if words := scopeTokens(strings.Fields(c.Params["scope"])); len(words) > 0 {
		return words
	}
	return nil
}

// Error is the error code (RFC 6750 section 3.1), printable ASCII of 64 characters
// at most; "" where there is none.
func (c Challenge) Error() string { return codeOf(c.Params["error"], nil) }

// Bearer finds the Bearer challenge (RFC 6750) among a response's WWW-Authenticate
// fields: of several the one that names the resource's metadata, then the one that
// names an error, then the first.
func Bearer(fields []string) (Challenge, bool) {
	var found []Challenge
	for _, challenge := range ParseChallenges(fields) {
		if challenge.Scheme == "bearer" {
			found = append(found, challenge)
		}
	}
	if len(found) == 0 {
		return Challenge{}, false
	}
	for _, param := range []string{"resource_metadata", "error"} {
		if i := slices.IndexFunc(found, func(c Challenge) bool { return c.Params[param] != "" }); i >= 0 {
			return found[i], true
		}
	}
	return found[0], true
}

// ParseChallenges reads the challenges of WWW-Authenticate fields. It never fails:
// what servers write is read as far as it makes sense, and of what is longer than
// any server needs the beginning is read.
func ParseChallenges(fields []string) []Challenge {
	var all []Challenge
	for _, field := range fields[:min(len(fields), maxFields)] {
		reader := challengeReader{text: field[:min(len(field), maxFieldBytes)]}
		reader.read()
		all = append(all, reader.found...)
	}
	return all[:min(len(all), maxChallenges)]
}

// knownSchemes are schemes that end an unquoted value even where the comma before
// them is missing.
var knownSchemes = []string{"basic", "bearer", "digest", "dpop", "hoba", "mutual", "negotiate", "ntlm"}

// challengeReader walks through one field.
type challengeReader struct {
	text  string
	at    int
	found []Challenge
	// last is the name of the parameter whose unquoted value may go on after a
	// space; "" where none may.
	last string
}

func (r *challengeReader) read() {
	for r.at < len(r.text) && len(r.found) <= maxChallenges {
		separated := r.skipSeparators()
		name := r.token()
		if name == "" {
			r.at++
			continue
		}
		after := r.at
		r.skipSpace()
		switch {
		case r.peek() == '=' && len(r.found) > 0:
			r.at++
			r.param(strings.ToLower(name))
		case r.peek() == '=':
			// A parameter of no scheme says nothing.
			r.at++
			r.value()
		case !separated && r.goesOn(name):
			r.at = after
			r.lengthen(name)
		default:
			r.at = after
			r.found = append(r.found, Challenge{Scheme: strings.ToLower(name)})
			r.last = ""
			r.skipToken68()
		}
	}
}

// skipSeparators passes spaces and commas; true at the field's beginning and where
// a comma was among them.
func (r *challengeReader) skipSeparators() bool {
	separated := r.at == 0
	for r.at < len(r.text) && (isSpace(r.text[r.at]) || r.text[r.at] == ',') {
		separated = separated || r.text[r.at] == ','
		r.at++
	}
	return separated
}

// goesOn decides whether a word that stands after a space, without a comma and
// without "=", belongs to the unquoted value before it, or begins a challenge.
func (r *challengeReader) goesOn(word string) bool {
	return r.last != "" && !slices.Contains(knownSchemes, strings.ToLower(word))
}

func (r *challengeReader) lengthen(word string) {
	params := r.found[len(r.found)-1].Params
	params[r.last] += " " + word
}

func (r *challengeReader) param(name string) {
	value, quoted := r.value()
	challenge := &r.found[len(r.found)-1]
	r.last = ""
	if _, repeated := challenge.Params[name]; repeated || len(challenge.Params) >= maxParams {
		return
	}
	if challenge.Params == nil {
		challenge.Params = map[string]string{}
	}
	challenge.Params[name] = value
	if !quoted {
		r.last = name
	}
}

// value reads a quoted string, or what stands up to a comma or a space.
func (r *challengeReader) value() (text string, quoted bool) {
	r.skipSpace()
	if r.peek() != '"' {
		start := r.at
		for r.at < len(r.text) && r.text[r.at] != ',' && !isSpace(r.text[r.at]) {
			r.at++
		}
		return r.text[start:r.at], false
	}
	var out strings.Builder
	for r.at++; r.at < len(r.text); r.at++ {
		switch b := r.text[r.at]; {
		case b == '"':
			r.at++
			return out.String(), true
		case b == '\\' && r.at+1 < len(r.text):
			r.at++
			out.WriteByte(r.text[r.at])
		default:
			out.WriteByte(b)
		}
	}
	return out.String(), true
}

// skipToken68 passes credentials-like text after a scheme (RFC 9110 section 11.2),
// which ends the challenge.
func (r *challengeReader) skipToken68() {
	start := r.at
	r.skipSpace()
	if r.at == start {
		return
	}
	from := r.at
	for r.at < len(r.text) && (isTokenByte(r.text[r.at]) || r.text[r.at] == '/') {
		r.at++
	}
	for r.at > from && r.peek() == '=' {
		r.at++
	}
	end := r.at
	r.skipSpace()
	if end == from || r.at < len(r.text) && r.text[r.at] != ',' {
		r.at = start
	}
}

func (r *challengeReader) token() string {
	start := r.at
	for r.at < len(r.text) && isTokenByte(r.text[r.at]) {
		r.at++
	}
	return r.text[start:r.at]
}

func (r *challengeReader) skipSpace() {
	for r.at < len(r.text) && isSpace(r.text[r.at]) {
		r.at++
	}
}

// peek is the byte that comes; 0 at the end.
func (r *challengeReader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\n' }

// isTokenByte is RFC 9110's tchar.
func isTokenByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0
}
