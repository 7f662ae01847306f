package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/tokenstore"
	"github.com/psych-systems/psych-go/tokenstore/sqlite"
)

// writerOf makes this program a process that swaps in the file it names, until it
// is killed.
const writerOf = "TOKENSTORE_WRITER_OF"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerOf); path != "" {
		fmt.Fprintln(os.Stderr, writeForever(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// own is the record that the other process alone writes, and both that which two
// processes count up.
var own, both = named("grant/own"), named("grant/both")

func named(name string) tokenstore.Key { return tokenstore.Key{Owner: grant.Owner, Name: name} }

// writeForever prints a line for each swap that the store has acknowledged.
func writeForever(path string) error {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	held, err := store.Load(ctx, own)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		value := fmt.Sprintf("%d %s", i, strings.Repeat("x", i%5*1000))
		if held.Version, err = store.Swap(ctx, own, held.Version, []byte(value)); err != nil {
			return err
		}
		fmt.Printf("%d %d\n", held.Version, i)
		if err := increment(ctx, store, both); err != nil {
			return err
		}
		fmt.Println("counted")
	}
}

// acknowledged is what a process said before it was killed.
type acknowledged struct {
	version uint64
	round   int
	counted int
}

// killAfter starts a process that writes, kills it while it does, and returns what
// it had acknowledged.
func killAfter(t *testing.T, path string, lines int, extra time.Duration) (last acknowledged) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	process := exec.CommandContext(ctx, os.Args[0])
	process.Env = append(os.Environ(), writerOf+"="+path)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	for read := 0; scanner.Scan(); read++ {
		if scanner.Text() == "counted" {
			last.counted++
		} else if _, err := fmt.Sscan(scanner.Text(), &last.version, &last.round); err != nil {
			t.Errorf("it said %q", scanner.Text())
		}
		if read == lines {
			time.AfterFunc(extra, func() { process.Process.Kill() })
		}
	}
	var exit *exec.ExitError
	if err := process.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("it was not killed: %v", err)
	}
	if last.version == 0 || last.counted == 0 {
		t.Fatalf("it acknowledged %+v", last)
	}
	return last
}

func TestWhatAKilledProcessHadAcknowledgedIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.db")
	beside := open(t, path)
	counting, stop := context.WithCancel(t.Context())
	defer stop()
	mine := make(chan int)
	go func() {
		made := 0
		for counting.Err() == nil {
			// The call itself is not cancelled, so that what is made is counted.
			if err := increment(t.Context(), beside, both); err != nil {
				t.Errorf("beside a process that is killed, an increment got %v", err)
				break
			}
			made++
		}
		mine <- made
	}()
	killed, counted := 5, 0
	for i := range killed {
		last := killAfter(t, path, 10+7*i, time.Duration(i)*3*time.Millisecond)
		counted += last.counted
		got, err := beside.Load(t.Context(), own)
		if err != nil {
			t.Fatal(err)
		}
		round, _, _ := strings.Cut(string(got.Value), " ")
		switch reached, err := strconv.Atoi(round); {
		case err != nil:
			t.Errorf("the record is %.40q", got.Value)
		case got.Version == last.version && reached == last.round:
		case got.Version > last.version && reached == last.round+1: // written, and killed before it could say so
		default:
			t.Errorf("round %d at version %d was acknowledged, and the store has %d at %d", last.round, last.version, reached, got.Version)
		}
	}
	stop()
	made := <-mine
	got, err := open(t, path).Load(t.Context(), both)
	if err != nil {
		t.Fatal(err)
	}
	// Each killed process may have made one increment of which it could not tell.
	if count, err := strconv.Atoi(string(got.Value)); err != nil || count < made+counted || count > made+counted+killed || made == 0 {
		t.Errorf("%d and %d increments were acknowledged, and %q were made", made, counted, got.Value)
	}
}
