package storetest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/tokenstore"
)

// limit bounds what a test waits for.
const limit = 2 * time.Minute

// grant is a key as the runtime uses them.
var grant = tokenstore.Key{
	Owner: tokenstore.Owner{Tenant: "acme", Principal: "ann", URL: "https://mcp.example.com/records?key=k"},
	Name:  "grant/default",
}

// Run tests a store. Each call of open returns an empty store of its own; Run
// closes it.
func Run(t *testing.T, open func(t *testing.T) tokenstore.Store) {
	for name, story := range map[string]func(*testing.T, tokenstore.Store){
		"a record is what was last written":          written,
		"a change needs the present version":         conflicts,
		"a version is never used again":              versions,
		"of many writers none loses an update":       increments,
		"of many first writers one wins":             firstWriters,
		"no owner sees what is another's":            isolation,
		"values are copied":                          copies,
		"a key names something":                      names,
		"a cancelled call changes nothing":           cancellation,
		"what is closed is not used":                 closing,
		"a store that is closed in use does no harm": closingInUse,
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			t.Cleanup(func() {
				if err := store.Close(); err != nil {
					t.Errorf("it cannot be closed: %v", err)
				}
			})
			story(t, store)
		})
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func swap(t *testing.T, store tokenstore.Store, key tokenstore.Key, have uint64, value string) uint64 {
	t.Helper()
	version, err := store.Swap(within(t), key, have, []byte(value))
	if err != nil {
		t.Fatalf("%q cannot be written: %v", value, err)
	}
	return version
}

// holds checks what a store holds; version 0 is nothing.
func holds(t *testing.T, store tokenstore.Store, key tokenstore.Key, version uint64, value string) {
	t.Helper()
	got, err := store.Load(within(t), key)
	if err != nil || got.Version != version || string(got.Value) != value {
		t.Errorf("%+v holds %q at %d (%v), want %q at %d", key, got.Value, got.Version, err, value, version)
	}
}

func written(t *testing.T, store tokenstore.Store) {
	holds(t, store, grant, 0, "")
	first := swap(t, store, grant, 0, "one")
	holds(t, store, grant, first, "one")
	second := swap(t, store, grant, first, "")
	holds(t, store, grant, second, "")
	large := string(bytes.Repeat([]byte{0, 0xff, '\n'}, 1<<16))
	third := swap(t, store, grant, second, large)
	holds(t, store, grant, third, large)
	if first == 0 || second <= first || third <= second {
		t.Errorf("the versions are %d, %d and %d", first, second, third)
	}
	if err := store.Delete(within(t), grant, third); err != nil {
		t.Errorf("it cannot be deleted: %v", err)
	}
	holds(t, store, grant, 0, "")
	if keys, err := store.List(within(t), grant.Owner); err != nil || len(keys) != 0 {
		t.Errorf("what is deleted is listed as %v (%v)", keys, err)
	}
	if err := store.Delete(within(t), grant, third); err != nil {
		t.Errorf("deleting nothing fails: %v", err)
	}
}

func conflicts(t *testing.T, store tokenstore.Store) {
	ctx := within(t)
	refused := func(have, actual uint64, err error) {
		t.Helper()
		var conflict *tokenstore.Conflict
		if !errors.As(err, &conflict) || *conflict != (tokenstore.Conflict{Key: grant, Have: have, Actual: actual}) {
			t.Errorf("a change of %d at %d got %v", have, actual, err)
		}
	}
	_, err := store.Swap(ctx, grant, 7, []byte("x"))
	refused(7, 0, err)
	first := swap(t, store, grant, 0, "one")
	for _, have := range []uint64{0, first + 1, 1 << 62, 1<<64 - 1} {
		_, err = store.Swap(ctx, grant, have, []byte("x"))
		refused(have, first, err)
	}
	refused(first+1, first, store.Delete(ctx, grant, first+1))
	holds(t, store, grant, first, "one")
	second := swap(t, store, grant, first, "two")
	_, err = store.Swap(ctx, grant, first, []byte("x"))
	refused(first, second, err)
	refused(first, second, store.Delete(ctx, grant, first))
	holds(t, store, grant, second, "two")
	if err := store.Delete(ctx, grant, 0); err != nil {
		t.Errorf("deleting whatever there is fails: %v", err)
	}
	holds(t, store, grant, 0, "")
}

func versions(t *testing.T, store tokenstore.Store) {
	other := grant
	other.Name = "client/default"
	seen := map[uint64]bool{}
	for range 5 {
		for _, key := range []tokenstore.Key{grant, other} {
			version := swap(t, store, key, 0, "x")
			if seen[version] {
				t.Errorf("version %d is used again", version)
			}
			seen[version] = true
			if err := store.Delete(within(t), key, version); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Who read a record that is gone since does not overwrite the one that followed.
	present := swap(t, store, grant, 0, "new")
	for stale := range seen {
		var conflict *tokenstore.Conflict
		if _, err := store.Swap(within(t), grant, stale, []byte("old")); !errors.As(err, &conflict) {
			t.Errorf("version %d of a deleted record overwrites: %v", stale, err)
		}
	}
	holds(t, store, grant, present, "new")
}

// increment adds one to the number in a record, however often it loses.
func increment(ctx context.Context, store tokenstore.Store) error {
	for {
		have, err := store.Load(ctx, grant)
		if err != nil {
			return err
		}
		count := 0
		if have.Version != 0 {
			if count, err = strconv.Atoi(string(have.Value)); err != nil {
				return err
			}
		}
		_, err = store.Swap(ctx, grant, have.Version, strconv.AppendInt(nil, int64(count+1), 10))
		var conflict *tokenstore.Conflict
		if !errors.As(err, &conflict) {
			return err
		}
	}
}

func increments(t *testing.T, store tokenstore.Store) {
	const writers, each = 8, 12
	ctx := within(t)
	var working sync.WaitGroup
	for range writers {
		working.Go(func() {
			for range each {
				if err := increment(ctx, store); err != nil {
					t.Errorf("an increment failed: %v", err)
					return
				}
			}
		})
	}
	working.Wait()
	if got, err := store.Load(ctx, grant); err != nil || string(got.Value) != strconv.Itoa(writers*each) {
		t.Errorf("%d increments made %q (%v)", writers*each, got.Value, err)
	}
}

func firstWriters(t *testing.T, store tokenstore.Store) {
	ctx := within(t)
	var mu sync.Mutex
	var won []uint64
	var working sync.WaitGroup
	for range 8 {
		working.Go(func() {
			version, err := store.Swap(ctx, grant, 0, []byte("x"))
			var conflict *tokenstore.Conflict
			switch {
			case err == nil:
				mu.Lock()
				won = append(won, version)
				mu.Unlock()
			case !errors.As(err, &conflict) || conflict.Actual == 0:
				t.Errorf("a loser got %v", err)
			}
		})
	}
	working.Wait()
	if len(won) != 1 {
		t.Errorf("%d won", len(won))
	} else {
		holds(t, store, grant, won[0], "x")
	}
}

func copies(t *testing.T, store tokenstore.Store) {
	value := []byte("one")
	version, err := store.Swap(within(t), grant, 0, value)
	if err != nil {
		t.Fatal(err)
	}
	copy(value, "two")
	holds(t, store, grant, version, "one")
	got, err := store.Load(within(t), grant)
	if err != nil || len(got.Value) != 3 {
		t.Fatalf("got %q (%v)", got.Value, err)
	}
	copy(got.Value, "two")
	holds(t, store, grant, version, "one")
}

func names(t *testing.T, store tokenstore.Store) {
	ctx := within(t)
	for _, key := range []tokenstore.Key{{}, {Name: "grant/x"}, {Owner: tokenstore.Owner{Principal: "ann", URL: "https://a.example/"}, Name: "n"}, {Owner: grant.Owner}} {
		_, loading := store.Load(ctx, key)
		_, swapping := store.Swap(ctx, key, 0, nil)
		for _, err := range []error{loading, swapping, store.Delete(ctx, key, 0)} {
			if !errors.Is(err, tokenstore.ErrKey) {
				t.Errorf("%+v got %v", key, err)
			}
		}
	}
	if _, err := store.List(ctx, tokenstore.Owner{Principal: "ann"}); !errors.Is(err, tokenstore.ErrKey) {
		t.Errorf("a list of all tenants got %v", err)
	}
}

// fails calls every method and returns what each fails with.
func fails(ctx context.Context, store tokenstore.Store, have uint64) []error {
	_, loading := store.Load(ctx, grant)
	_, swapping := store.Swap(ctx, grant, have, []byte("x"))
	deleting := store.Delete(ctx, grant, have)
	_, listing := store.List(ctx, grant.Owner)
	_, listingAll := store.List(ctx, tokenstore.Owner{Tenant: grant.Tenant})
	return []error{loading, swapping, deleting, listing, listingAll}
}

func cancellation(t *testing.T, store tokenstore.Store) {
	version := swap(t, store, grant, 0, "one")
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	for i, err := range fails(ctx, store, version) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled call %d got %v", i, err)
		}
	}
	holds(t, store, grant, version, "one")
}

func closing(t *testing.T, store tokenstore.Store) {
	version := swap(t, store, grant, 0, "one")
	for range 2 {
		if err := store.Close(); err != nil {
			t.Errorf("closing fails: %v", err)
		}
	}
	for i, err := range fails(within(t), store, version) {
		if !errors.Is(err, tokenstore.ErrClosed) {
			t.Errorf("call %d of a closed store got %v", i, err)
		}
	}
}

func closingInUse(t *testing.T, store tokenstore.Store) {
	ctx := within(t)
	begun := make(chan struct{}, 64)
	var working sync.WaitGroup
	for i := range 4 {
		key := grant
		key.Name = "grant/" + strconv.Itoa(i)
		working.Go(func() {
			for have := uint64(0); ; {
				version, err := store.Swap(ctx, key, have, []byte("x"))
				if err != nil {
					if !errors.Is(err, tokenstore.ErrClosed) {
						t.Errorf("a swap beside the end got %v", err)
					}
					return
				}
				have = version
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	select {
	case <-begun:
	case <-ctx.Done():
		t.Error("nothing was written")
	}
	if err := store.Close(); err != nil {
		t.Errorf("closing fails: %v", err)
	}
	working.Wait()
	if _, err := store.List(ctx, tokenstore.Owner{Tenant: grant.Tenant}); !errors.Is(err, tokenstore.ErrClosed) {
		t.Errorf("a list got %v", err)
	}
}
