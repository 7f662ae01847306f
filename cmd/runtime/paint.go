package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// paint colours words where a terminal shows them; its zero value does not.
type paint bool

// paintFor colours on a terminal, unless the environment asks for none
// (NO_COLOR, see no-color.org) or the terminal knows none.
func paintFor(out io.Writer) paint {
	return paint(isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func (p paint) good(text string) string  { return p.in("32", text) }
func (p paint) bad(text string) string   { return p.in("31", text) }
func (p paint) doubt(text string) string { return p.in("33", text) }
func (p paint) head(text string) string  { return p.in("1", text) }
func (p paint) quiet(text string) string { return p.in("2", text) }

func (p paint) in(code, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// isTerminal reports whether what is written goes to a terminal.
func isTerminal(out io.Writer) bool {
	file, ok := fileOf(out)
	return ok && term.IsTerminal(int(file.Fd()))
}

// widthOf is a terminal's width in characters, for anything else a width that
// reads well.
func widthOf(out io.Writer) int {
	const readable = 100
	file, ok := fileOf(out)
	if !ok {
		return readable
	}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		return width
	}
	return readable
}

// fileOf is the file that is written to in the end, if it is one.
func fileOf(out io.Writer) (*os.File, bool) {
	if written, ok := out.(*output); ok {
		out = written.Writer
	}
	file, ok := out.(*os.File)
	return file, ok
}
