package bounded

import (
	"io"
	"sync"
)

// piece is how much is read at once while nobody knows how much there is, in bytes.
const piece = 32 << 10

// few is up to how much is collected in pieces, in bytes. Beyond it, holding them
// and a copy at once would show.
const few = 3 << 20

// lent pieces come back, so that an answer costs its own size and no more.
var lent = sync.Pool{New: func() any { return new([piece]byte) }}

// collect reads r in pieces, to its end or until there are a few megabytes; whole
// says that it was the end. It fails as [ReadAll] does.
func collect(r io.Reader, limit int64) (b []byte, whole bool, err error) {
	var pieces []*[piece]byte
	defer func() {
		for _, one := range pieces {
			lent.Put(one)
		}
	}()
	size := 0
	for size < few {
		if size == len(pieces)*piece {
			pieces = append(pieces, lent.Get().(*[piece]byte))
		}
		n, err := r.Read(pieces[len(pieces)-1][size%piece:])
		size += n
		switch {
		case limit > 0 && int64(size) > limit:
			return nil, false, &TooLargeError{Limit: limit}
		case err == io.EOF:
			return join(pieces, size), true, nil
		case err != nil:
			return nil, false, err
		}
	}
	return join(pieces, size), false, nil
}

func join(pieces []*[piece]byte, size int) []byte {
	b := make([]byte, 0, size)
	for _, one := range pieces {
		b = append(b, one[:min(piece, size-len(b))]...)
	}
	return b
}
