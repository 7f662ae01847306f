package eventstream

import (
	"bytes"
	"io"
	"strconv"
	"time"

	"github.com/psych-systems/psych-go/mcpwire/bounded"
)

// Event is one dispatched event.
type Event struct {
	// Name is the event's type; "" when the stream names none, which means "message".
	Name string
	// Data is the event's data lines, joined with LF. It is valid until the next
	// call of [Reader.Next], unless it was taken with [Reader.Take].
	Data []byte
	// Oversize says that the event was larger than [Limits.Event] and that Data is
	// only its beginning; see [Limits.SkipOversize]. End is then how it ended, else nil.
	Oversize bool
	End      []byte
}

// Limits bounds what a stream may cost. Zero fields mean no bound.
type Limits struct {
	// Event is the most bytes that one event may hold.
	Event int64
	// Changing is asked for Event anew when an event's data begins, for a stream that
	// outlives its limit; nil leaves it.
	Changing func() int64
	// Total is the most bytes that may be read from the stream.
	Total int64
	// SkipOversize reads past an event that is larger than Event and reports its
	// beginning and end, instead of ending the stream; so one stream may serve many
	// requests and only one of them pays. An event that goes on for skippable times
	// as long ends the stream all the same.
	SkipOversize bool
}

const (
	// longestField bounds what is kept of a field's name: enough for the longest
	// known one behind a byte order mark, and to tell it from a longer one.
	longestField = 12
	// longestValue bounds the value of any field but data. An id beyond it is
	// ignored, like an id with a NUL.
	longestValue = 4096
	// keptOversize is how much is reported of each end of an event that is skipped.
	keptOversize = 4096
	// skippable is how many times its limit an event may be read past.
	skippable = 8
	// smallData is the most capacity that is kept between events, so that a quiet
	// stream does not hold on to the room that one large event needed.
	smallData = 16 << 10
)

var lineFeed = []byte{'\n'}

// Reader reads the events of one stream. It is not safe for concurrent use.
type Reader struct {
	source io.Reader
	limits Limits
	total  int64
	chunk  []byte // what was read and is not yet parsed is chunk[start:end]
	start  int
	end    int
	err    error // the source's, told when all that was read is parsed

	begun    bool // the byte order mark, if any, is behind
	afterCR  bool // the last line ended with CR; an LF next belongs to it
	line     bool // the current line has at least one byte
	named    bool // the current line's colon is behind
	spaced   bool // the value has begun, so a space is part of it
	field    []byte
	value    []byte
	tooLong  bool // the current line's value is beyond longestValue
	data     []byte
	hasData  bool // a data field was seen, be it empty
	oversize int64
	skipped  []byte // the end of what was read past
	told     bool   // the event was dispatched; the next call forgets it
	name     string
	id       string // of the event being read
	lastID   string // of the last event that was dispatched
	retry    time.Duration
	hasRetry bool
}

// NewReader returns a reader of the stream. It reads chunks of the given size in
// bytes; a stream that is mostly silent needs no more than a few hundred.
func NewReader(source io.Reader, chunk int, limits Limits) *Reader {
	return &Reader{source: source, limits: limits, chunk: make([]byte, max(chunk, 16))}
}

// LastEventID is the id with which a broken stream is resumed: the one that held
// when the last complete event ended. It is "" when the server gave none.
func (r *Reader) LastEventID() string { return r.lastID }

// Retry is the reconnection time that the server asked for.
func (r *Reader) Retry() (wait time.Duration, given bool) { return r.retry, r.hasRetry }

// Next returns the next event that has data. It fails with io.EOF at the
// stream's end, with a [bounded.TooLargeError] beyond a limit, and else with the
// source's own error.
func (r *Reader) Next() (Event, error) {
	r.endEvent()
	for {
		if r.start == r.end {
			if err := r.fill(); err != nil {
				return Event{}, err
			}
			continue
		}
		rest := r.chunk[r.start:r.end]
		if r.afterCR {
			r.afterCR = false
			if rest[0] == '\n' {
				r.start++
				continue
			}
		}
		end := lineEnd(rest)
		piece := rest
		if end >= 0 {
			piece = rest[:end]
		}
		r.start += len(piece)
		if err := r.take(piece); err != nil {
			return Event{}, err
		}
		if end < 0 {
			continue
		}
		r.afterCR = rest[end] == '\r'
		r.start++
		event, dispatched, err := r.endLine()
		if dispatched || err != nil {
			return event, err
		}
	}
}

// Take hands the last event's data over to the caller, for good.
func (r *Reader) Take() []byte {
	taken := r.data
	r.data = nil
	return taken
}

func (r *Reader) fill() error {
	if r.err != nil {
		return r.err
	}
	n, err := r.source.Read(r.chunk)
	r.start, r.end, r.err = 0, n, err
	r.total += int64(n)
	if r.limits.Total > 0 && r.total > r.limits.Total {
		r.err = &bounded.TooLargeError{Limit: r.limits.Total}
		return r.err
	}
	if n == 0 && err != nil {
		return err
	}
	return nil
}

// lineEnd is the index of the first CR or LF, -1 when there is none.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// take adds a piece of the current line.
func (r *Reader) take(piece []byte) error {
	if len(piece) == 0 {
		return nil
	}
	r.line = true
	if !r.named {
		colon := bytes.IndexByte(piece, ':')
		name := piece
		if colon >= 0 {
			name = piece[:colon]
		}
		r.field = append(r.field, name[:min(len(name), longestField-len(r.field))]...)
		if colon < 0 {
			return nil
		}
		if err := r.startValue(); err != nil {
			return err
		}
		piece = piece[colon+1:]
	}
	if len(piece) > 0 && !r.spaced {
		r.spaced = true
		if piece[0] == ' ' {
			piece = piece[1:]
		}
	}
	switch string(r.field) {
	case "data":
		return r.addData(piece)
	case "event", "id", "retry":
		if len(r.value)+len(piece) > longestValue {
			r.tooLong = true
			return nil
		}
		r.value = append(r.value, piece...)
	}
	return nil
}

// startValue is what happens at a line's colon, or at its end when it has none.
func (r *Reader) startValue() error {
	r.named = true
	if !r.begun {
		r.begun = true
		r.field = bytes.TrimPrefix(r.field, []byte("\uFEFF"))
	}
	if string(r.field) != "data" {
		return nil
	}
	if r.hasData {
		return r.addData(lineFeed)
	}
	r.hasData = true
	if r.limits.Changing != nil {
		r.limits.Event = r.limits.Changing()
	}
	return nil
}

func (r *Reader) addData(piece []byte) error {
	if r.oversize == 0 {
		grown, err := bounded.Append(r.data, piece, r.limits.Event)
		if err == nil {
			r.data = grown
			return nil
		}
	}
	limit := r.limits.Event
	if !r.limits.SkipOversize {
		return &bounded.TooLargeError{Limit: limit}
	}
	r.oversize += int64(len(piece))
	if r.oversize > skippable*limit {
		return &bounded.TooLargeError{Limit: limit}
	}
	if len(r.skipped)+len(piece) > 2*keptOversize {
		r.skipped = append(r.skipped[:0], lastOf(r.skipped)...)
	}
	r.skipped = append(r.skipped, lastOf(piece)...)
	return nil
}

// lastOf is as much of an end as is kept.
func lastOf(b []byte) []byte { return b[max(0, len(b)-keptOversize):] }

// endLine processes the field of a line that is complete; a blank line
// dispatches the event.
func (r *Reader) endLine() (event Event, dispatched bool, err error) {
	if !r.line {
		event, dispatched = r.dispatch()
		return event, dispatched, nil
	}
	if !r.named {
		if err := r.startValue(); err != nil {
			return Event{}, false, err
		}
	}
	if !r.tooLong {
		switch string(r.field) {
		case "event":
			r.name = eventName(r.value)
		case "id":
			if bytes.IndexByte(r.value, 0) < 0 {
				r.id = string(r.value)
			}
		case "retry":
			r.setRetry()
		}
	}
	r.line, r.named, r.spaced, r.tooLong = false, false, false, false
	r.field, r.value = r.field[:0], r.value[:0]
	return Event{}, false, nil
}

func (r *Reader) dispatch() (Event, bool) {
	r.begun = true
	r.lastID = r.id
	if !r.hasData {
		r.name = ""
		return Event{}, false
	}
	r.told = true
	event := Event{Name: r.name, Data: r.data, Oversize: r.oversize > 0}
	if event.Oversize {
		event.End = lastOf(append(bytes.Clone(lastOf(r.data)), r.skipped...))
		event.Data = event.Data[:min(len(event.Data), keptOversize)]
	}
	return event, true
}

// endEvent forgets the event that was dispatched last.
func (r *Reader) endEvent() {
	if !r.told {
		return
	}
	r.told = false
	r.name, r.hasData, r.oversize, r.skipped = "", false, 0, nil
	if cap(r.data) > smallData {
		r.data = nil
	}
	r.data = r.data[:0]
}

// setRetry takes the reconnection time when it is only digits; the standard
// ignores it otherwise.
func (r *Reader) setRetry() {
	for _, c := range r.value {
		if c < '0' || c > '9' {
			return
		}
	}
	if ms, err := strconv.ParseInt(string(r.value), 10, 40); err == nil {
		r.retry, r.hasRetry = time.Duration(ms)*time.Millisecond, true
	}
}

func eventName(value []byte) string {
	switch string(value) {
	case "", "message":
		return ""
	default:
		return string(value)
	}
}
