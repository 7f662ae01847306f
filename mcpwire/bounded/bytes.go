package bounded

import (
	"fmt"
	"io"
	"slices"
)

// TooLargeError is what was sent beyond a limit. Reading stopped there.
type TooLargeError struct {
	// Limit is what was allowed, in bytes.
	Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("more than the %d bytes allowed", e.Limit)
}

// trusted is the most room made on a stranger's word alone, in bytes.
const trusted = 4 << 20

// Append adds piece to b, which the caller owns. It fails with a
// [TooLargeError], and leaves b as it was, where the sum would pass the limit;
// a limit of 0 is none.
//
// The room doubles while that is cheap and then becomes the limit at once:
// doubling on would hold almost twice the limit for the moment of the last copy.
func Append(b, piece []byte, limit int64) ([]byte, error) {
	need := int64(len(b)) + int64(len(piece))
	if limit > 0 && need > limit {
		return b, &TooLargeError{Limit: limit}
	}
	if need > int64(cap(b)) {
		room := max(2*int64(cap(b)), need)
		if limit > 0 && room > limit/4 {
			room = limit
		}
		b = slices.Grow(b, int(room)-len(b))
	}
	return append(b, piece...), nil
}

// ReadAll reads r to its end. It fails with a [TooLargeError] beyond the limit
// and else with r's own error. The hint, in bytes, is how much r says it holds;
// 0 or less is unknown.
//
// What turns out to be small is held once, in its own size; for what is large, the
// room that is allowed is made at once. So a reading never holds more than the
// limit and a few megabytes, and copies those only.
func ReadAll(r io.Reader, hint, limit int64) ([]byte, error) {
	if limit > 0 && hint > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	if hint > 0 && hint <= trusted {
		return readOn(r, make([]byte, 0, hint+1), limit)
	}
	b, whole, err := collect(r, limit)
	if err != nil || whole {
		return b, err
	}
	room := max(hint, limit, 2*int64(len(b)))
	if hint > 0 {
		room = max(hint, int64(len(b)))
	}
	return readOn(r, slices.Grow(b, int(room)+1-len(b)), limit)
}

// readOn reads on behind b. One byte of room beyond what is expected tells an end
// from more.
func readOn(r io.Reader, b []byte, limit int64) ([]byte, error) {
	room := int64(0)
	if limit > 0 {
		room = limit + 1
	}
	for {
		if len(b) == cap(b) {
			grown, err := Append(b, []byte{0}, room)
			if err != nil {
				return nil, &TooLargeError{Limit: limit}
			}
			b = grown[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case limit > 0 && int64(len(b)) > limit:
			return nil, &TooLargeError{Limit: limit}
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		}
	}
}
