package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/secret"
)

const plantedKey = "planted-key-hunter2"

// longestSentence bounds what a failure says, in bytes: the endpoint's own words are
// cut.
const longestSentence = 1500

// canned answers every request with the same bytes, in pieces of a size.
type canned struct {
	status int
	media  string
	body   []byte
	piece  int
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: c.status, Header: http.Header{"Content-Type": {c.media}}, Request: r, ContentLength: -1,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(&bites{bytes.NewReader(c.body), c.piece}),
	}, nil
}

type bites struct {
	rest io.Reader
	size int
}

func (p *bites) Read(b []byte) (int, error) { return p.rest.Read(b[:min(len(b), p.size)]) }

// generate asks once, and returns what was shown besides.
func generate(t *testing.T, c canned) (answer model.Response, shown string, err error) {
	t.Helper()
	m, err := New(Options{
		BaseURL: "http://models.example/v1", Attempts: 1, Client: &http.Client{Transport: c},
		Key: func(context.Context) (secret.Text, error) { return secret.NewText(plantedKey), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	answer, err = m.Generate(t.Context(), question, func(piece string) { text.WriteString(piece) })
	return answer, text.String(), err
}

// Whatever an endpoint answers, and however it is cut, it is one answer or one
// ModelError, the same each time; no sentence shows the key.
func FuzzGenerate(f *testing.F) {
	stream := "data: " + text("a") + "\n\ndata: " + calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) + "\n\ndata: " + finish("tool_calls") + "\n\ndata: [DONE]\n\n"
	for _, body := range []string{
		stream, strings.ReplaceAll(stream, "\n", "\r\n"), ": hi\n\n" + stream, "\uFEFF" + stream, "data: [DONE]\n\n", "", "data\n\ndata: {}\n\n", "event: error\ndata: {\"error\":\"" + plantedKey + "\"}\n\n",
		`{"error":{"message":"` + plantedKey + `","code":"429"}}`, `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1}}`, "<html>", `{"error":null,"detail":["x"]}`, "data: " + finish("length"),
	} {
		f.Add(uint16(0), "text/event-stream", []byte(body), uint8(5))
		f.Add(uint16(0), "application/json", []byte(body), uint8(5))
		f.Add(uint16(203), "text/plain", []byte(body), uint8(5))
		f.Add(uint16(229), "", []byte(body), uint8(5))
	}
	f.Fuzz(func(t *testing.T, status uint16, media string, body []byte, piece uint8) {
		if len(body) > 16<<10 {
			return
		}
		c := canned{status: 200 + int(status%400), media: media, body: body, piece: int(piece) + 1}
		answer, shown, err := generate(t, c)
		c.piece = 1 << 20
		same, sameShown, sameErr := generate(t, c)
		if !reflect.DeepEqual(answer, same) || shown != sameShown || (err == nil) != (sameErr == nil) || err != nil && err.Error() != sameErr.Error() {
			t.Fatalf("in pieces %+v, %q, %v; whole %+v, %q, %v", answer, shown, err, same, sameShown, sameErr)
		}
		if err == nil {
			if answer.Text != shown {
				t.Fatalf("the text is %q and %q was shown", answer.Text, shown)
			}
			return
		}
		if failure.KindOf(err) != failure.KindModelError || !reflect.DeepEqual(answer, model.Response{}) {
			t.Fatalf("%+v, %v", answer, err)
		}
		if said := err.Error(); strings.Contains(said, plantedKey) || strings.ContainsAny(said, "\r\n") || len(said) > longestSentence {
			t.Fatalf("%q", said)
		}
	})
}

// An answer takes room for what it is long, however it is cut.
func TestAnAnswerTakesRoomForWhatItIsLong(t *testing.T) {
	ends := func(n int) []string {
		events := []string{calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\""}}`)}
		for range n {
			events = append(events, calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}"}}`))
		}
		return events
	}
	choices := func(n int) []string { return []string{`{"choices":[` + strings.Repeat(`{},`, 20*n) + `{}]}`} }
	for name, build := range map[string]func(n int) []string{"ends that are none": ends, "choices that nobody asked for": choices} {
		room := func(n int) (perByte float64) {
			events := build(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var a assembly
			size := 0
			for _, event := range events {
				size += len(event)
				if failed := a.add([]byte(event), func(string) {}); failed != nil {
					t.Fatal(failed)
				}
			}
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc-before.TotalAlloc) / float64(size)
		}
		if few, many := room(500), room(8000); many > 2*few+8 || many > 40 {
			t.Errorf("%s: %.1f bytes for a byte, and %.1f in a long answer", name, few, many)
		}
	}
}
