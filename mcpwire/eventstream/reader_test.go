package eventstream_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/psych-systems/psych-go/mcpwire/bounded"
	"github.com/psych-systems/psych-go/mcpwire/eventstream"
)

type told struct{ name, data string }

func readAll(t *testing.T, r *eventstream.Reader) ([]told, error) {
	t.Helper()
	var events []told
	for {
		event, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, told{event.Name, string(event.Data)})
	}
}

func TestStreamsAreReadAsTheStandardSays(t *testing.T) {
	cases := []struct {
		name   string
		stream string
		want   []told
		lastID string
	}{
		{"one event", "data: a\n\n", []told{{"", "a"}}, ""},
		{"named message", "event: message\ndata: a\n\n", []told{{"", "a"}}, ""},
		{"another name", "event: endpoint\ndata: /x\n\n", []told{{"endpoint", "/x"}}, ""},
		{"a name holds for one event", "event: x\ndata: 1\n\ndata: 2\n\n", []told{{"x", "1"}, {"", "2"}}, ""},
		{"a name without data is forgotten", "event: x\n\ndata: 2\n\n", []told{{"", "2"}}, ""},
		{"CR LF", "data: a\r\n\r\ndata: b\r\n\r\n", []told{{"", "a"}, {"", "b"}}, ""},
		{"lone CR", "data: a\r\rdata: b\r\r", []told{{"", "a"}, {"", "b"}}, ""},
		{"line ends mixed", "data: a\rdata: b\ndata: c\r\n\r\n", []told{{"", "a\nb\nc"}}, ""},
		{"comments", ": hi\n:\ndata: a\n: there\n\n", []told{{"", "a"}}, ""},
		{"byte order mark", "\uFEFFdata: a\n\n", []told{{"", "a"}}, ""},
		{"byte order mark before a long field", "\uFEFFretry: 5\ndata: a\n\n", []told{{"", "a"}}, ""},
		{"a second mark is a field's name", "data: a\n\n\uFEFFdata: b\n\n", []told{{"", "a"}}, ""},
		{"a mark within", "data: \uFEFFa\n\n", []told{{"", "\uFEFFa"}}, ""},
		{"unknown bare line", "ping\ndata: a\n\n", []told{{"", "a"}}, ""},
		{"bare data", "data\n\ndata\ndata\n\n", []told{{"", ""}, {"", "\n"}}, ""},
		{"unknown fields", "datax: 1\ndat: 2\nfoo: 3\ndata: a\n\n", []told{{"", "a"}}, ""},
		{"only one space goes", "data:  a \n\n", []told{{"", " a "}}, ""},
		{"no space", "data:a\n\n", []told{{"", "a"}}, ""},
		{"colons in the value", "data: a:b\n\n", []told{{"", "a:b"}}, ""},
		{"cut off", "data: a\n\ndata: b\n", []told{{"", "a"}}, ""},
		{"cut off within a line", "data: a\n\ndata: b", []told{{"", "a"}}, ""},
		{"ids", "id: 1\ndata: a\n\ndata: b\n\n", []told{{"", "a"}, {"", "b"}}, "1"},
		{"an id alone primes", "id: 7\ndata\n\n", []told{{"", ""}}, "7"},
		{"an id without data", "id: 7\n\n", nil, "7"},
		{"an id that was cut off", "id: 1\n\nid: 2\n", nil, "1"},
		{"an id is taken back", "id: 1\ndata: a\n\nid\n\n", []told{{"", "a"}}, ""},
		{"an id with a NUL", "id: 1\n\nid: 2\x00\n\n", nil, "1"},
		{"an endless id", "id: 1\n\nid: " + strings.Repeat("x", 5000) + "\n\n", nil, "1"},
		{"nothing", "", nil, ""},
		{"blank lines", "\n\n\r\n\r", nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, chunk := range []int{16, 4096} {
				for _, source := range []io.Reader{
					strings.NewReader(c.stream),
					iotest.OneByteReader(strings.NewReader(c.stream)),
					iotest.DataErrReader(strings.NewReader(c.stream)),
				} {
					r := eventstream.NewReader(source, chunk, eventstream.Limits{})
					got, err := readAll(t, r)
					if err != io.EOF {
						t.Fatal(err)
					}
					if len(got) != len(c.want) {
						t.Fatalf("got %q, want %q", got, c.want)
					}
					for i := range got {
						if got[i] != c.want[i] {
							t.Errorf("event %d is %q, want %q", i, got[i], c.want[i])
						}
					}
					if r.LastEventID() != c.lastID {
						t.Errorf("last id %q, want %q", r.LastEventID(), c.lastID)
					}
				}
			}
		})
	}
}

func TestRetryIsDigitsOnly(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"50": 50 * time.Millisecond, "0": 0, "": -1, "5s": -1, "-5": -1, "99999999999999": -1,
	} {
		r := eventstream.NewReader(strings.NewReader("retry: "+value+"\n\n"), 64, eventstream.Limits{})
		if _, err := readAll(t, r); err != io.EOF {
			t.Fatal(err)
		}
		got, given := r.Retry()
		if given != (want >= 0) || given && got != want {
			t.Errorf("retry %q is %v, %v", value, got, given)
		}
	}
}

func TestAnEventBeyondItsLimitEndsTheStream(t *testing.T) {
	for name, stream := range map[string]string{
		"one line":       "data: " + strings.Repeat("x", 200) + "\n\n",
		"many lines":     strings.Repeat("data: xxxxxxxxxxxxxxxxxxxx\n", 10) + "\n",
		"only line ends": strings.Repeat("data\n", 200) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := eventstream.NewReader(strings.NewReader("data: ok\n\n"+stream), 64, eventstream.Limits{Event: 100})
			got, err := readAll(t, r)
			if large, ok := errors.AsType[*bounded.TooLargeError](err); !ok || large.Limit != 100 {
				t.Fatal(err)
			}
			if len(got) != 1 {
				t.Fatalf("the event before it: %q", got)
			}
		})
	}
}

func TestAnEventBeyondItsLimitCanBeSkipped(t *testing.T) {
	stream := "data: {\"id\":1," + strings.Repeat("x", 150) + "\n\ndata: ok\n\n"
	r := eventstream.NewReader(strings.NewReader(stream), 32, eventstream.Limits{Event: 100, SkipOversize: true})
	event, err := r.Next()
	if err != nil || !event.Oversize || !bytes.HasPrefix(event.Data, []byte(`{"id":1,`)) {
		t.Fatalf("%+v, %v", event, err)
	}
	if event, err = r.Next(); err != nil || event.Oversize || event.End != nil || string(event.Data) != "ok" {
		t.Fatalf("the next event: %+v, %v", event, err)
	}

	for _, past := range []int{1, 10, 5_000, 9_000, 100_000} {
		const limit = 20_000
		text := strings.Repeat("b", limit-3) + strings.Repeat("m", past) + `,"id":1}`
		r = eventstream.NewReader(strings.NewReader("data: "+text+"\n\n"), 700, eventstream.Limits{Event: limit, SkipOversize: true})
		event, err := r.Next()
		if err != nil || !event.Oversize || len(event.End) != 4096 || !strings.HasSuffix(text, string(event.End)) {
			t.Errorf("%d bytes past the limit: the end is %d bytes, %.20q (%v)", past, len(event.End), event.End, err)
		}
	}

	endless := io.MultiReader(strings.NewReader("data: "), endlessReader{})
	r = eventstream.NewReader(endless, 32, eventstream.Limits{Event: 100, SkipOversize: true})
	if _, err = r.Next(); err == nil {
		t.Fatal("an endless event has to end the stream")
	}
}

func TestAStreamBeyondItsLimitEnds(t *testing.T) {
	r := eventstream.NewReader(strings.NewReader(strings.Repeat(": hi\n", 100)), 64, eventstream.Limits{Total: 100})
	_, err := r.Next()
	if large, ok := errors.AsType[*bounded.TooLargeError](err); !ok || large.Limit != 100 {
		t.Fatal(err)
	}
}

func TestTakenDataStays(t *testing.T) {
	r := eventstream.NewReader(strings.NewReader("data: first\n\ndata: other\n\n"), 64, eventstream.Limits{})
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	first := r.Take()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if string(first) != "first" {
		t.Fatalf("changed to %q", first)
	}
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// How the bytes arrive must not matter, nor may any byte make the reader fail,
// loop or hold more than it was allowed.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"", "data: a\n\n", "\uFEFFid: 1\r\ndata\r\rdata: b\n\n", ":\n\nevent: x\ndata: {}\n\n", "retry: 5\n\ndata:\n\n",
	} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, chunk uint8) {
		const limit = 64
		limits := eventstream.Limits{Event: limit, SkipOversize: true}
		whole := eventstream.NewReader(bytes.NewReader(stream), 1<<16, limits)
		split := eventstream.NewReader(iotest.OneByteReader(bytes.NewReader(stream)), int(chunk), limits)
		for {
			a, errA := whole.Next()
			b, errB := split.Next()
			if len(a.Data) > limit || len(b.Data) > limit {
				t.Fatalf("an event of %d and %d bytes", len(a.Data), len(b.Data))
			}
			if a.Oversize || b.Oversize {
				return
			}
			if a.Name != b.Name || !bytes.Equal(a.Data, b.Data) || whole.LastEventID() != split.LastEventID() {
				t.Fatalf("%q read at once, %q read in pieces", a.Data, b.Data)
			}
			if errA != nil || errB != nil {
				if errA != errB && errA == io.EOF {
					t.Fatal(errB)
				}
				return
			}
		}
	})
}
