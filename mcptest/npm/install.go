package npm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

const (
	manifest = "package.json"
	lock     = "package-lock.json"
	// installTime is how long one installation may take.
	installTime = 5 * time.Minute
)

// Install makes sure that the packages which the folder's package.json and
// package-lock.json pin are installed, and returns the directory that holds
// node_modules. Tests and processes that ask at the same time wait for one
// installation. Scripts of the packages are not run.
func Install(tb testing.TB, name string, folder fs.FS) string {
	tb.Helper()
	demand(tb, "npm")
	directory, err := install(name, folder)
	if err != nil {
		tb.Fatalf("the npm packages of %s cannot be installed: %v", name, err)
	}
	return directory
}

func install(name string, folder fs.FS) (string, error) {
	pinned, err := fs.ReadFile(folder, lock)
	if err != nil {
		return "", err
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(pinned)
	directory := filepath.Join(root, ".cache", "npm", name+"-"+hex.EncodeToString(digest[:6]))
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(directory, "lock")).Lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	// npm writes node_modules in several steps; the mark is made after the last.
	installed := filepath.Join(directory, "installed")
	if _, err := os.Stat(installed); err == nil {
		return directory, nil
	}
	for _, file := range []string{manifest, lock} {
		content, err := fs.ReadFile(folder, file)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(directory, file), content, 0o644); err != nil {
			return "", err
		}
	}
	if err := clean(directory); err != nil {
		return "", err
	}
	return directory, os.WriteFile(installed, nil, 0o644)
}

// Scripts puts scripts where Node.js finds the packages that an [Install] returned
// the directory of, and returns their own directory within it.
func Scripts(tb testing.TB, directory string, folder fs.FS) string {
	tb.Helper()
	name, err := scripts(directory, folder)
	if err != nil {
		tb.Fatalf("the scripts cannot be written: %v", err)
	}
	return name
}

func scripts(directory string, folder fs.FS) (string, error) {
	files, err := fs.Glob(folder, "*")
	if err != nil {
		return "", err
	}
	contents, digest := make(map[string][]byte, len(files)), sha256.New()
	for _, file := range files {
		content, err := fs.ReadFile(folder, file)
		if err != nil {
			return "", err
		}
		contents[file] = content
		fmt.Fprintf(digest, "%q %q", file, content)
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(directory, "lock")).Lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	name := "scripts-" + hex.EncodeToString(digest.Sum(nil)[:6])
	if err := os.MkdirAll(filepath.Join(directory, name), 0o755); err != nil {
		return "", err
	}
	for file, content := range contents {
		if err := os.WriteFile(filepath.Join(directory, name, file), content, 0o644); err != nil {
			return "", err
		}
	}
	return name, nil
}

// clean runs "npm ci", which installs what the lock pins and nothing else.
func clean(directory string) error {
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	command := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
	command.Dir = directory
	command.WaitDelay = time.Second
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", errors.Join(err, ctx.Err()), output)
	}
	return nil
}

// moduleRoot is the directory of the module under test, found from the working
// directory, which is the tested package's.
func moduleRoot() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(directory, "go.mod")); err == nil {
			return directory, nil
		}
		parent := filepath.Dir(directory)
		if parent == directory {
			return "", errors.New("no go.mod stands above the working directory")
		}
		directory = parent
	}
}
