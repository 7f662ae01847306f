package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"
)

// That a commit lasts through a loss of power cannot be tried here; that SQLite is
// told to make it last can be seen.
func TestEveryConnectionWritesToTheDisk(t *testing.T) {
	store, err := Open(t.Context(), filepath.Join(t.TempDir(), "tokens.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, db := range []*sql.DB{store.database.writing, store.database.reading} {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "fullfsync": "1", "secure_delete": "1"} {
			var got string
			if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %q (%v)", pragma, got, err)
			}
		}
	}
}
