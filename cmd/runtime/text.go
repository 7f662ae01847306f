package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable makes one line of a text that came from elsewhere: no control
// characters, which steer terminals, and no characters that reorder a line or
// cannot be seen; white space becomes single spaces.
func printable(text string) string {
	cleaned := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, unicode.In(r, unicode.C):
			return -1
		default:
			return r
		}
	}, text)
	return strings.Join(strings.Fields(cleaned), " ")
}

// printableLines is [printable] for a text whose lines are kept.
func printableLines(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == utf8.RuneError, unicode.In(r, unicode.C):
			return -1
		default:
			return r
		}
	}, text)
}

// shorten cuts a line to at most limit characters.
func shorten(line string, limit int) string {
	runes := []rune(line)
	if len(runes) <= limit {
		return line
	}
	return string(runes[:max(limit-1, 0)]) + "…"
}

// shortenHead cuts a line to its last limit characters.
func shortenHead(line string, limit int) string {
	runes := []rune(line)
	if len(runes) <= limit {
		return line
	}
	return "…" + string(runes[len(runes)-max(limit-1, 0):])
}

// wrap breaks a line between words into lines of at most width characters; a
// longer word keeps a line to itself.
func wrap(line string, width int) []string {
	var lines []string
	current := ""
	for _, word := range strings.Fields(line) {
		switch {
		case current == "":
			current = word
		case utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) <= width:
			current += " " + word
		default:
			lines = append(lines, current)
			current = word
		}
	}
	return append(lines, current)
}
