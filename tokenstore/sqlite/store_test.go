package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/tokenstore"
	"github.com/psych-systems/psych-go/tokenstore/sqlite"
	"github.com/psych-systems/psych-go/tokenstore/storetest"
)

var grant = tokenstore.Key{
	Owner: tokenstore.Owner{Tenant: "acme", Principal: "ann", URL: "https://mcp.example.com/records?key=marked-query"},
	Name:  "grant/default",
}

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func seal(t testing.TB, store tokenstore.Store, key string, former ...string) tokenstore.Store {
	t.Helper()
	var texts []secret.Text
	for _, one := range former {
		texts = append(texts, secret.NewText(one))
	}
	sealed, err := tokenstore.Seal(store, secret.NewText(key), texts...)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestAStoreInAFileKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) tokenstore.Store { return open(t, filepath.Join(t.TempDir(), "tokens.db")) })
}

func TestASealedStoreInAFileKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) tokenstore.Store {
		return seal(t, open(t, filepath.Join(t.TempDir(), "tokens.db")), "a secret of the tests")
	})
}

func TestWhatWasStoredIsThereAfterTheStoreIsOpenedAgain(t *testing.T) {
	// Characters that mean something in a URI are part of the name.
	path := filepath.Join(t.TempDir(), "to kens?a=b#c%20.db")
	first := open(t, path)
	version, err := first.Swap(t.Context(), grant, 0, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Delete(t.Context(), grant, version); err != nil {
		t.Fatal(err)
	}
	deleted := version
	if version, err = first.Swap(t.Context(), grant, 0, []byte("two")); err != nil {
		t.Fatal(err)
	}
	first.Close()
	again := open(t, path)
	if got, err := again.Load(t.Context(), grant); err != nil || string(got.Value) != "two" || got.Version != version {
		t.Errorf("got %q at %d (%v)", got.Value, got.Version, err)
	}
	if err := again.Delete(t.Context(), grant, 0); err != nil {
		t.Fatal(err)
	}
	if next, err := again.Swap(t.Context(), grant, 0, nil); err != nil || next <= version || version <= deleted {
		t.Errorf("the versions are %d, %d and %d (%v)", deleted, version, next, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file has another name: %v", err)
	}
}

func TestTwoStoresOnOneFileLoseNoUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.db")
	var working sync.WaitGroup
	const each = 25
	for range 2 {
		// Both make the file, at once.
		working.Go(func() {
			store := open(t, path)
			for range each {
				if err := increment(t.Context(), store, grant); err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
	if got, err := open(t, path).Load(t.Context(), grant); err != nil || string(got.Value) != strconv.Itoa(2*each) {
		t.Errorf("%d increments made %q (%v)", 2*each, got.Value, err)
	}
}

// increment adds one to the number in a record, however often it loses.
func increment(ctx context.Context, store tokenstore.Store, key tokenstore.Key) error {
	for {
		have, err := store.Load(ctx, key)
		if err != nil {
			return err
		}
		count, _ := strconv.Atoi(string(have.Value))
		_, err = store.Swap(ctx, key, have.Version, []byte(strconv.Itoa(count+1)))
		var conflict *tokenstore.Conflict
		if !errors.As(err, &conflict) {
			return err
		}
	}
}

// lock takes the file's write lock, as a process that hangs would.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
	}
}

func TestALockedFileEndsACallWithItsContextAndDelaysNoReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.db")
	store := open(t, path)
	version, err := store.Swap(t.Context(), grant, 0, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	unlock := lock(t, path)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	waiting := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := store.Swap(short, grant, version, []byte("two"))
			waiting <- err
		}()
	}
	if got, err := store.Load(t.Context(), grant); err != nil || string(got.Value) != "one" {
		t.Errorf("beside a writer, a reader got %q (%v)", got.Value, err)
	}
	for range 2 {
		if err := <-waiting; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a writer got %v", err)
		}
	}
	// A writer outlives a lock that is given back in time.
	patient := make(chan error)
	go func() {
		_, err := store.Swap(t.Context(), grant, version, []byte("three"))
		patient <- err
	}()
	time.Sleep(150 * time.Millisecond) // longer than SQLite's own wait
	unlock()
	if err := <-patient; err != nil {
		t.Errorf("a patient writer got %v", err)
	}
}

func TestNoPlainTextReachesTheDisk(t *testing.T) {
	dir := t.TempDir()
	const marked = "marked-refresh-token"
	store := seal(t, open(t, filepath.Join(dir, "tokens.db")), "marked-secret-of-the-key")
	var version uint64
	for i := range 50 {
		var err error
		if version, err = store.Swap(t.Context(), grant, version, []byte(strings.Repeat(marked, 1+i*20))); err != nil {
			t.Fatal(err)
		}
	}
	search := func(text string) (found []string) {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(data, []byte(text)) {
				found = append(found, filepath.Base(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	forbidden := []string{marked, "marked-query", "mcp.example.com", "marked-secret"}
	check := func(when string) {
		t.Helper()
		for _, text := range forbidden {
			if found := search(text); len(found) > 0 {
				t.Errorf("%s, %q stands in %v", when, text, found)
			}
		}
		if len(search("grant/default")) == 0 {
			t.Errorf("%s, not even the record's name is found", when)
		}
	}
	check("while it is open")
	store.Close()
	check("when it is closed")

	// Without the seal all of this is found, so the search finds what is there.
	bare := open(t, filepath.Join(dir, "bare.db"))
	if _, err := bare.Swap(t.Context(), grant, 0, []byte(marked+"marked-secret")); err != nil {
		t.Fatal(err)
	}
	bare.Close()
	for _, text := range forbidden {
		if found := search(text); len(found) != 1 || found[0] != "bare.db" {
			t.Errorf("%q was planted, and found in %v", text, found)
		}
	}
}

func TestTheFileHoldsADigestOfTheURL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.db")
	store := seal(t, open(t, path), "a secret of the tests")
	for _, key := range []tokenstore.Key{grant, {Owner: tokenstore.Owner{Tenant: "acme"}, Name: "client/x"}} {
		if _, err := store.Swap(t.Context(), key, 0, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var digest, none string
	if err := db.QueryRowContext(t.Context(), "SELECT max(url), min(url) FROM token_record").Scan(&digest, &none); err != nil {
		t.Fatal(err)
	}
	// printf %s URL | sha256sum
	if digest != "sha256:9ae95dc289b6d09f7ad9496b1f2b6e01917f1bd02fe975c4fb8c2027953b1808" || none != "" {
		t.Errorf("the URLs are %q and %q", digest, none)
	}
}

func TestAFileOfALaterLayoutAndOneOfAnotherKindAreRefused(t *testing.T) {
	dir := t.TempDir()
	later := filepath.Join(dir, "later.db")
	open(t, later).Close()
	db, err := sql.Open("sqlite", later)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE token_schema SET version = 2"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("these are notes\n", 400)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		later: "a newer version of this program wrote it",
		text:  "it holds something else",
	} {
		_, err := sqlite.Open(t.Context(), path)
		if failure.KindOf(err) != failure.KindSpecInvalid || err.Error() != path+" cannot be the token store: "+want {
			t.Errorf("got %v", err)
		}
	}
	if kept, err := os.ReadFile(text); err != nil || !strings.HasPrefix(string(kept), "these are notes") {
		t.Errorf("the notes are %.20q (%v)", kept, err)
	}
}
