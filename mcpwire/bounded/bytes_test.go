package bounded_test

import (
	"bytes"
	"errors"
	"io"
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
