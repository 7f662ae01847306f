package eventstream_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/psych-systems/psych-go/mcpwire/eventstream"
)

// standard reads a whole stream by the letter of WHATWG HTML, "Interpreting an
// event stream", without any bound.
func standard(stream string) (events []told, lastID string) {
	stream = strings.TrimPrefix(stream, "\uFEFF")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(stream, "\n")
	var data strings.Builder
	var name, id string
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			lastID = id
			if data.Len() > 0 {
				if name == "message" {
					name = ""
				}
				events = append(events, told{name, strings.TrimSuffix(data.String(), "\n")})
			}
			data.Reset()
			name = ""
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			data.WriteString(value + "\n")
		case "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		}
	}
	return events, lastID
}

// The reader says what the standard says, of any bytes that stay within its bounds.
func FuzzStandard(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "\uFEFFid: 1\r\ndata\r\rdata: b\n\n", ":\n\nevent: x\ndata: {}\n\n", "retry: 5\n\ndata:\n\n", "event: x\nevent\ndata: a\n\n", "data: a\r\n\ndata:  b\r\r\n",
		"\uFEFF\uFEFFdata: a\n\n", "id: a\x00\nid: b\n\ndata\n\nid\n\n", "dataa: x\ndata : y\n data: z\n\n", "\uFEFF\n\uFEFFdata: a\n\n", "eventeventevent: a\ndata: b\n\n",
	} {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream string, chunk uint8) {
		if len(stream) > 4000 {
			return
		}
		want, lastID := standard(stream)
		r := eventstream.NewReader(iotest.HalfReader(bytes.NewReader([]byte(stream))), int(chunk), eventstream.Limits{Event: 8000})
		got, err := readAll(t, r)
		if err == nil || len(got) != len(want) || r.LastEventID() != lastID {
			t.Fatalf("%q: %q and %q, by the standard %q and %q", stream, got, r.LastEventID(), want, lastID)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%q: event %d is %q, by the standard %q", stream, i, got[i], want[i])
			}
		}
	})
}
