package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/tokenstore"
)

const (
	// busyTimeout is how long SQLite itself waits for a lock that another process
	// has. It is short, because a context does not end that wait.
	busyTimeout = "100" // milliseconds
	// patience is how long a call waits for such a lock altogether; its context may
	// end it sooner.
	patience = 10 * time.Second
	// pause stands between two attempts.
	pause = 5 * time.Millisecond
	// readers is how many reads are made at once.
	readers = 4
)

// database is an open file. Calls within this process wait in a queue for the one
// connection that writes, where their contexts end the wait, and readers wait for
// no writer.
type database struct {
	writing, reading *sql.DB
	closed           atomic.Bool
	close            func() error
}

func connect(path string) (*database, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	pragmas := url.Values{
		"_pragma": {
			"busy_timeout(" + busyTimeout + ")",
			"journal_mode(WAL)",
			// In WAL mode, FULL alone makes a commit last through a loss of power. A
			// refresh token that was rotated and announced must.
			"synchronous(FULL)",
			// Where fsync leaves data in the disk's own cache, this does not.
			"fullfsync(1)", "checkpoint_fullfsync(1)",
			// What is deleted or replaced is overwritten.
			"secure_delete(1)",
		},
		// A change takes the lock before it reads, so that what it read is present.
		"_txlock": {"immediate"},
	}
	source := (&url.URL{Scheme: "file", Path: filepath.ToSlash(absolute), RawQuery: pragmas.Encode()}).String()
	opened := &database{}
	if opened.writing, err = sql.Open("sqlite", source); err != nil {
		return nil, err
	}
	if opened.reading, err = sql.Open("sqlite", source); err != nil {
		return nil, errors.Join(err, opened.writing.Close())
	}
	opened.writing.SetMaxOpenConns(1)
	opened.reading.SetMaxOpenConns(readers)
	opened.close = sync.OnceValue(func() error {
		opened.closed.Store(true)
		return errors.Join(opened.reading.Close(), opened.writing.Close())
	})
	return opened, nil
}

// read runs a query, again while another process has the lock.
func (d *database) read(ctx context.Context, query func(context.Context, *sql.DB) error) error {
	return d.told(ctx, "read", patiently(ctx, func() error { return query(ctx, d.reading) }))
}

// write runs a change as one transaction, again while another process has the
// lock.
func (d *database) write(ctx context.Context, change func(context.Context, *sql.Tx) error) error {
	return d.told(ctx, "written", patiently(ctx, func() error {
		tx, err := d.writing.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := change(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	}))
}

// patiently repeats what found the file locked, and was not made.
func patiently(ctx context.Context, attempt func() error) error {
	for began := time.Now(); ; {
		err := attempt()
		if !isBusy(err) || time.Since(began) > patience {
			return err
		}
		// Where waiting could be a deadlock, SQLite does not wait at all.
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// told puts what the caller acts on in the place of the driver's errors.
func (d *database) told(ctx context.Context, verb string, err error) error {
	var conflict *tokenstore.Conflict
	switch {
	case err == nil, errors.As(err, &conflict), errors.Is(err, errNewer):
		return err
	case d.closed.Load():
		return tokenstore.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case isBusy(err):
		return failure.New(failure.KindBusy, "the token store is locked by another process", err)
	default:
		return failure.New(failure.KindInternal, "the token store cannot be "+verb, err)
	}
}

// isBusy reports whether another connection has the lock.
func isBusy(err error) bool {
	code := codeOf(err)
	return code == codes.SQLITE_BUSY || code == codes.SQLITE_LOCKED
}

// isNoDatabase reports whether a file holds something else than a database.
func isNoDatabase(err error) bool { return codeOf(err) == codes.SQLITE_NOTADB }

// codeOf is SQLite's primary result code; 0 for what is no error of SQLite.
func codeOf(err error) int {
	var found *driver.Error
	if !errors.As(err, &found) {
		return 0
	}
	return found.Code() & 0xff
}
