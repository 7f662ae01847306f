package npm

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/mcptest"
)

const (
	// startTime is how long a server may take until it listens.
	startTime = 60 * time.Second
	// orderTime is how long it may take over an order.
	orderTime = 20 * time.Second
	// The words that the preload's lines begin with.
	listening = "listening on "
	requested = "request "
	did       = "did "
)

// preload runs before the script; see there.
//
//go:embed preload.mjs
var preload []byte

// Server is a server that a script of an npm package runs as, over as many lives
// as a test gives it. Only the test's own goroutine starts and stops it; the other
// methods are safe for concurrent use.
type Server struct {
	tb                testing.TB
	node              string
	directory, script string
	arguments         []string
	output            printed
	running           *process // nil while it is stopped

	mu       sync.Mutex
	origin   string
	requests []mcptest.Request
	lines    []string
}

// process is one life of a server.
type process struct {
	command *exec.Cmd
	orders  io.WriteCloser
	done    chan string   // the orders that it has carried out
	ended   chan struct{} // closed when it prints no more
}

// Serve runs a script that starts a server, and waits until it listens, on
// loopback and on a port that the system picks. The server ends with the test, and
// also when the test process dies. What it prints is told when the test fails. It
// runs on the Node.js that the directory's packages pin, else on the machine's.
func Serve(tb testing.TB, directory, script string, arguments ...string) *Server {
	tb.Helper()
	node, pinned := pinnedNode(directory)
	if !pinned {
		demand(tb, "node")
		node = "node"
	}
	s := &Server{tb: tb, node: node, directory: directory, script: script, arguments: arguments}
	tb.Cleanup(func() {
		s.Stop()
		if tb.Failed() {
			tb.Logf("%s printed:\n%s", script, s.output.String())
		}
	})
	s.Start()
	return s
}

// Origin is the server's scheme, host and port. It stays the same over a restart.
func (s *Server) Origin() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.origin
}

// Requests is what reached the server over all its lives, oldest first.
func (s *Server) Requests() []mcptest.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Printed counts the lines of the server's standard output, over all its lives,
// that read so.
func (s *Server) Printed(line string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, printed := range s.lines {
		if printed == line {
			count++
		}
	}
	return count
}

// Lines is what the server printed after a word that its lines begin with, over all
// its lives, oldest first.
func (s *Server) Lines(word string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for _, printed := range s.lines {
		if line, begins := strings.CutPrefix(printed, word); begins {
			found = append(found, line)
		}
	}
	return found
}

// Order gives the script an order, which it takes as the event "order" of its
// process, and waits until the event's handlers have returned. What was printed and
// what had arrived before is known from then on. Only the test's own goroutine gives
// orders.
func (s *Server) Order(order string) {
	s.tb.Helper()
	if _, err := io.WriteString(s.running.orders, order+"\n"); err != nil {
		s.tb.Fatalf("%s takes no orders: %v", s.script, err)
	}
	select {
	case <-s.running.done:
	case <-s.running.ended:
		s.tb.Fatalf("%s ended before it carried out %q", s.script, order)
	case <-time.After(orderTime):
		s.tb.Fatalf("%s does not carry out %q", s.script, order)
	}
}

// CutStreams breaks the connections that carry a stream of changes: the answer to
// a GET, or to a subscriptions/listen.
func (s *Server) CutStreams() { s.Order("cut") }

// Stop kills the server, as a machine's end does: every connection breaks and
// clients are refused until [Server.Start].
func (s *Server) Stop() {
	if s.running == nil {
		return
	}
	_ = s.running.command.Process.Kill() // it may have ended
	<-s.running.ended
	_ = s.running.command.Wait() // it was killed
	_ = s.running.orders.Close()
	s.running = nil
}

// Start starts a server that [Server.Stop] stopped, at its old address.
func (s *Server) Start() {
	s.tb.Helper()
	if s.running != nil {
		return
	}
	command := exec.Command(s.node, append([]string{
		"--import", "data:text/javascript;base64," + base64.StdEncoding.EncodeToString(preload), s.script,
	}, s.arguments...)...)
	command.Dir, command.Stderr = s.directory, &s.output
	if origin, err := url.Parse(s.Origin()); err == nil && origin.Port() != "" {
		command.Env = append(os.Environ(), "MCPTEST_PORT="+origin.Port())
	}
	orders, err := command.StdinPipe()
	if err != nil {
		s.tb.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		s.tb.Fatal(err)
	}
	if err := command.Start(); err != nil {
		s.tb.Fatalf("node cannot be started: %v", err)
	}
	s.running = &process{command: command, orders: orders, done: make(chan string, 1), ended: make(chan struct{})}
	origin := make(chan string, 1)
	go s.read(stdout, origin, s.running) // ends with the server, whose end of the pipe it reads
	select {
	case at := <-origin:
		s.mu.Lock()
		s.origin = at
		s.mu.Unlock()
	case <-s.running.ended:
		s.tb.Fatalf("%s ended before it listened", s.script)
	case <-time.After(startTime):
		s.tb.Fatalf("%s does not listen after %s", s.script, startTime)
	}
}

// read takes what the server prints.
func (s *Server) read(stdout io.Reader, origin chan<- string, life *process) {
	defer close(life.ended)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		if at, found := strings.CutPrefix(line, listening); found && len(origin) == 0 {
			origin <- at
		} else if told, found := strings.CutPrefix(line, requested); found {
			s.take(told)
		} else if order, found := strings.CutPrefix(line, did); found {
			life.done <- order
		} else if line != "" {
			s.output.add(line + "\n")
			s.mu.Lock()
			s.lines = append(s.lines, line)
			s.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// take takes a request of which the preload tells.
func (s *Server) take(told string) {
	var wire struct {
		Method, Path, Body string
		Header             map[string]any
	}
	if json.Unmarshal([]byte(told), &wire) != nil {
		s.output.add(told + "\n")
		return
	}
	request, err := http.NewRequest(wire.Method, wire.Path, bytes.NewReader(nil))
	if err != nil {
		s.output.add(told + "\n")
		return
	}
	for name, value := range wire.Header {
		if text, one := value.(string); one {
			request.Header.Set(name, text)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, mcptest.NewRequest(request, []byte(wire.Body)))
}
