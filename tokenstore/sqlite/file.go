package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/psych-systems/psych-go/failure"
)

// mode lets the user of the process alone read and write.
const mode fs.FileMode = 0o600

// prepare makes the database's file before the driver does, because the driver
// would make it readable to others, and refuses what is not a file of one's own.
// The driver gives the files beside it the mode of the file itself.
func prepare(path string) error {
	if err := private(path); errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	for _, beside := range []string{"-wal", "-shm", "-journal"} {
		if err := private(path + beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func create(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	switch {
	case errors.Is(err, fs.ErrExist):
		return private(path) // another process made it meanwhile
	case errors.Is(err, fs.ErrNotExist):
		return unusable(path, "its directory does not exist", err)
	case err != nil:
		return unusable(path, "it cannot be made", err)
	}
	if err := file.Close(); err != nil {
		return unusable(path, "it cannot be made", err)
	}
	if err := syncDirectory(filepath.Dir(path)); err != nil {
		return unusable(path, "its directory cannot be written", err)
	}
	return nil
}

// syncDirectory makes a new file's name last. Windows has no such call.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// private finds that a path is a regular file, and closes it to others. A file
// that does not exist is fs.ErrNotExist.
func private(path string) error {
	found, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil:
		return unusable(path, "it cannot be looked at", err)
	case found.Mode()&fs.ModeSymlink != 0:
		return unusable(path, "it is a symbolic link, and the file itself must be named", nil)
	case found.IsDir():
		return unusable(path, "it is a directory, and a file must be named", nil)
	case !found.Mode().IsRegular():
		return unusable(path, "it is not a regular file", nil)
	case found.Mode().Perm()&^mode == 0:
		return nil
	}
	if err := os.Chmod(path, mode); err != nil {
		return unusable(path, "others can read it, and that cannot be changed", err)
	}
	return nil
}

// unusable is a file that no store can be opened in.
func unusable(path, why string, cause error) error {
	return failure.New(failure.KindSpecInvalid, fmt.Sprintf("%s cannot be the token store: %s", path, why), cause)
}
