package bounded_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/psych-systems/psych-go/mcpwire/bounded"
)

func TestReadAllReadsUpToItsLimit(t *testing.T) {
	const limit = 10_000
	for name, hint := range map[string]int64{"no hint": -1, "right hint": limit, "wrong hint": 17} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat("x", limit)
			got, err := bounded.ReadAll(iotest.HalfReader(strings.NewReader(text)), hint, limit)
			if err != nil || string(got) != text {
				t.Fatalf("exactly the limit: %d bytes, %v", len(got), err)
			}
			_, err = bounded.ReadAll(strings.NewReader(text+"y"), hint, limit)
			if large, ok := errors.AsType[*bounded.TooLargeError](err); !ok || large.Limit != limit {
				t.Fatalf("a byte more: %v", err)
			}
		})
	}
}

func TestReadAllRefusesAnAnnouncedSizeUnread(t *testing.T) {
	_, err := bounded.ReadAll(iotest.ErrReader(errors.New("read")), 11, 10)
	if _, ok := errors.AsType[*bounded.TooLargeError](err); !ok {
		t.Fatal(err)
	}
}

func TestReadAllTellsTheSourcesError(t *testing.T) {
	broken := errors.New("broken")
	_, err := bounded.ReadAll(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), 0, 0)
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
}

// The room that an endless source can make us hold is the limit and, for the
// moment of the last copy, less than half of it again.
func TestReadAllHoldsLittleMoreThanItsLimit(t *testing.T) {
	const limit = 1 << 20
	var held, most int
	b := []byte(nil)
	piece := bytes.Repeat([]byte{'x'}, 1000)
	for {
		before := cap(b)
		grown, err := bounded.Append(b, piece, limit)
		if err != nil {
			break
		}
		if held = cap(grown); held != before {
			most = max(most, before+held)
		}
		b = grown
	}
	if most > limit*3/2 {
		t.Fatalf("held %d bytes for a limit of %d", most, limit)
	}
}

// However a source is cut and whatever it announces, what comes is what it sent, or
// the limit's error.
func TestReadAllOfAnySize(t *testing.T) {
	const limit = 4 << 20
	for _, size := range []int{0, 1, 511, 512, 32 << 10, 32<<10 + 1, 3<<20 - 1, 3 << 20, 3<<20 + 1, limit, limit + 1} {
		text := bytes.Repeat([]byte("0123456789abcdef!"), size/17+1)[:size]
		for name, cut := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "halved": iotest.HalfReader, "end with the data": iotest.DataErrReader,
		} {
			for _, hint := range []int64{-1, int64(size) / 2, int64(size)} {
				got, err := bounded.ReadAll(cut(bytes.NewReader(text)), hint, limit)
				if size <= limit && (err != nil || !bytes.Equal(got, text)) {
					t.Errorf("%d bytes, %s, hint %d: %d bytes, %v", size, name, hint, len(got), err)
				}
				if _, large := errors.AsType[*bounded.TooLargeError](err); size > limit && !large {
					t.Errorf("%d bytes, %s, hint %d: %v", size, name, hint, err)
				}
			}
		}
	}
}

// A source that ends costs its own size, once the pieces are there.
func TestReadAllCostsWhatItReturns(t *testing.T) {
	text := bytes.Repeat([]byte{'x'}, 2<<20)
	if _, err := bounded.ReadAll(bytes.NewReader(text), -1, 16<<20); err != nil {
		t.Fatal(err)
	}
	least := uint64(math.MaxUint64)
	for range 10 { // a collection in between takes pieces away
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = bounded.ReadAll(bytes.NewReader(text), -1, 16<<20)
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if least > uint64(len(text))*3/2 {
		t.Errorf("%d bytes were allocated for %d", least, len(text))
	}
}
