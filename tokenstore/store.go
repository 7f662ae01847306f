package tokenstore

import (
	"context"
	"errors"
	"fmt"
)

// Owner is whose a record is. Two owners that differ in any part share nothing.
type Owner struct {
	// Tenant is never empty.
	Tenant string
	// Principal is "" for what belongs to the tenant as a whole.
	Principal string
	// URL is the canonical URL of the MCP server; "" for what belongs to no one
	// server.
	URL string
}

// Key names one record of an owner.
type Key struct {
	Owner
	// Name tells an owner's records apart, and begins with what they are: "grant/…",
	// "client/…", "consent/…". It is not encrypted by any store, so it holds nothing
	// secret. It is never empty.
	Name string
}

// Check fails with [ErrKey] for a key that names nothing. Stores call it first.
func (k Key) Check() error {
	if k.Tenant == "" || k.Name == "" {
		return ErrKey
	}
	return nil
}

// Record is a value at a version. The zero value is no record.
type Record struct {
	Value []byte
	// Version is greater than that of everything written to the store before, under
	// any key, and is never used again, not even after the record is deleted: who
	// read a record that is gone cannot overwrite the one that follows. 0 is the
	// version of what does not exist.
	Version uint64
}

// Store keeps records. Implementations are safe for concurrent use, and those
// that last are safe for use by several processes at once. A failure other than
// [*Conflict] leaves open whether a change was made: load again to know.
type Store interface {
	// Load returns the record of a key, and the zero Record when there is none. The
	// caller owns the value.
	Load(ctx context.Context, key Key) (Record, error)
	// Swap writes a value in the place of the version that the caller has read, and
	// returns the new version once it lasts. With have 0 there must be no record. It
	// fails with [*Conflict] when have is not the present version. The value is
	// copied.
	Swap(ctx context.Context, key Key, have uint64, value []byte) (version uint64, err error)
	// Delete removes a record of that version, and of any version with have 0. It
	// fails with [*Conflict] when there is a record of another version. Deleting
	// nothing is no error.
	Delete(ctx context.Context, key Key, have uint64) error
	// List returns the keys that have a record, in no order. The tenant is required.
	// An empty Principal is every principal of the tenant, and an empty URL is every
	// URL. Each key that comes back can be given to Load, Swap and Delete.
	List(ctx context.Context, of Owner) ([]Key, error)
	// Close ends the use of the store; every later call fails with [ErrClosed],
	// except for Close.
	Close() error
}

// ErrKey is a key or an owner that names nothing. It is a mistake of the caller.
var ErrKey = errors.New("a stored record needs a tenant and a name")

// ErrClosed is a store that is used after its end.
var ErrClosed = errors.New("the token store is closed")

// Conflict is a change against a version that is not the present one: another
// wrote meanwhile. Whoever gets it loads again before it does anything else.
type Conflict struct {
	Key          Key
	Have, Actual uint64
}

func (c *Conflict) Error() string {
	return fmt.Sprintf("the stored record %.80q of tenant %.80q is at version %d and not at %d, because another wrote it meanwhile", c.Key.Name, c.Key.Tenant, c.Actual, c.Have)
}
