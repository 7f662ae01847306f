package main

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestForeignTextCannotSteerTheTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain, größe, 値":          "plain, größe, 値",
		"\x1b]0;title\x07 \x1b[2J": "]0;title [2J",
		"two\r\nlines\tand more":   "two lines and more",
		"right\u202eto left":       "rightto left",
		"cut \xff off":             "cut off",
		"c1 \u009b2J":              "c1 2J",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if strings.ContainsFunc(printable(text), unicode.IsControl) {
			t.Fatalf("%q is shown with a control character", text)
		}
		lines := printableLines(text)
		if strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(lines), unicode.IsControl) {
			t.Fatalf("%q is shown with a control character", text)
		}
	})
}

func TestLinesAreCutAndWrappedBetweenCharacters(t *testing.T) {
	if got := shorten("größe", 4) + " " + shorten("größe", 5) + " " + shortenHead("größe", 3); got != "grö… größe …ße" {
		t.Errorf("got %q", got)
	}
	if got := wrap("one two three incomprehensibilities x", 9); !slices.Equal(got, []string{"one two", "three", "incomprehensibilities", "x"}) {
		t.Errorf("got %q", got)
	}
	if got := wrap("", 9); !slices.Equal(got, []string{""}) {
		t.Errorf("got %q", got)
	}
}
