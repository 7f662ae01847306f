package sqlite_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/tokenstore/sqlite"
)

func modes(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]fs.FileMode{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		found[entry.Name()] = info.Mode()
	}
	return found
}

func TestEveryFileIsItsUsersAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens.db")
	// A file that was put back with a looser mode is closed to others again.
	for _, prepare := range []func() error{
		func() error { return nil },
		func() error { return os.Chmod(path, 0o666) },
	} {
		if err := prepare(); err != nil {
			t.Fatal(err)
		}
		store := open(t, path)
		held, err := store.Load(t.Context(), grant)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Swap(t.Context(), grant, held.Version, []byte("x")); err != nil {
			t.Fatal(err)
		}
		found := modes(t, dir)
		for _, name := range []string{"tokens.db", "tokens.db-wal", "tokens.db-shm"} {
			if found[name] != 0o600 {
				t.Errorf("%s has mode %v", name, found[name])
			}
		}
		store.Close()
	}
}

func TestAPathThatIsNoFileIsRefusedInOneSentence(t *testing.T) {
	dir := t.TempDir()
	file, link, beside := filepath.Join(dir, "real.db"), filepath.Join(dir, "link.db"), filepath.Join(dir, "beside.db")
	open(t, file).Close()
	for _, err := range []error{
		os.Symlink(file, link),
		os.Symlink(filepath.Join(dir, "nothing"), link+"2"),
		os.Symlink(file, beside+"-wal"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		dir:                              "it is a directory, and a file must be named",
		link:                             "it is a symbolic link, and the file itself must be named",
		link + "2":                       "it is a symbolic link, and the file itself must be named",
		filepath.Join(dir, "no", "t.db"): "its directory does not exist",
		os.DevNull:                       "it is not a regular file",
	} {
		_, err := sqlite.Open(t.Context(), path)
		if failure.KindOf(err) != failure.KindSpecInvalid || err.Error() != path+" cannot be the token store: "+want {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if _, err := sqlite.Open(t.Context(), beside); err == nil || !strings.HasPrefix(err.Error(), beside+"-wal cannot be") {
		t.Errorf("a link beside the file got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "nothing")); err == nil {
		t.Error("a link was followed")
	}
}
