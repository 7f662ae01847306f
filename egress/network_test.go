package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopback opens this machine's own addresses over http, for the tests whose
// subject is something else.
var loopback = egress.Policy{AllowHTTP: true, AllowCIDRs: prefixes("127.0.0.0/8", "::1/128")}

func prefixes(texts ...string) []netip.Prefix {
	networks := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		networks[i] = netip.MustParsePrefix(text)
	}
	return networks
}

func addresses(texts ...string) []netip.Addr {
	parsed := make([]netip.Addr, len(texts))
	for i, text := range texts {
		parsed[i] = netip.MustParseAddr(text)
	}
	return parsed
}

func open(t *testing.T, options egress.Options) *egress.Egress {
	t.Helper()
	out, err := egress.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	return out
}

// serve starts a server on loopback. It is closed after the egress that a test
// opens later.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// listenOn starts a server on a given address, which is one of loopback's.
func listenOn(t *testing.T, address string, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip("this machine has no such address: ", err)
	}
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// authorityOf makes a pool of a test server's own certificate.
func authorityOf(server *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

// secureServer starts a server that offers HTTP/2, with a certificate for
// example.com and for loopback.
func secureServer(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func get(t *testing.T, client *http.Client, url string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return read(client.Do(request))
}

func read(response *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	return string(body), errors.Join(err, response.Body.Close())
}

// expectDenied checks that an error is a denial whose sentence holds a text, and
// nothing that a test calls hidden.
func expectDenied(t *testing.T, err error, sentence string) {
	t.Helper()
	refusal, ok := errors.AsType[*failure.EgressDenied](err)
	if !ok {
		t.Fatalf("not a denial: %v", err)
	}
	if !strings.Contains(refusal.Error(), sentence) || strings.HasSuffix(refusal.Error(), ":") ||
		strings.Contains(refusal.Error(), "hidden") {
		t.Fatalf("the sentence is %q and should hold %q", refusal, sentence)
	}
}

// nameServer is a name server on loopback that answers as it is told.
type nameServer struct {
	socket net.PacketConn
	// answer is asked for each question about IPv4 and IPv6 addresses. The count is
	// how many questions of that type came before it.
	answer func(name string, count int) []netip.Addr

	mu    sync.Mutex
	asked map[dnsmessage.Question]int
	done  chan struct{}
}

func nameServerOf(t *testing.T, answer func(name string, count int) []netip.Addr) *nameServer {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{socket: socket, answer: answer, asked: map[dnsmessage.Question]int{}, done: make(chan struct{})}
	go s.serve()
	t.Cleanup(func() {
		_ = socket.Close()
		<-s.done
	})
	return s
}

// always answers every name with the same addresses.
func always(found ...netip.Addr) func(string, int) []netip.Addr {
	return func(string, int) []netip.Addr { return found }
}

// resolver asks this server.
func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", s.socket.LocalAddr().String())
	}}
}

// questions is how often the IPv4 addresses of a name were asked for.
func (s *nameServer) questions(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[dnsmessage.Question{
		Name: dnsmessage.MustNewName(name + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
	}]
}

func (s *nameServer) serve() {
	defer close(s.done)
	packet := make([]byte, 1500)
	for {
		n, from, err := s.socket.ReadFrom(packet)
		if err != nil {
			return
		}
		if reply, err := s.reply(packet[:n]); err == nil {
			_, _ = s.socket.WriteTo(reply, from)
		}
	}
}

func (s *nameServer) reply(packet []byte) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(packet)
	if err != nil {
		return nil, err
	}
	question, err := parser.Question()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	count := s.asked[question]
	s.asked[question]++
	s.mu.Unlock()
	message := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true},
		Questions: []dnsmessage.Question{question},
	}
	for _, address := range s.answer(strings.TrimSuffix(question.Name.String(), "."), count) {
		resource := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: question.Name, Class: question.Class}}
		switch {
		case address.Is4() && question.Type == dnsmessage.TypeA:
			resource.Body = &dnsmessage.AResource{A: address.As4()}
		case !address.Is4() && question.Type == dnsmessage.TypeAAAA:
			resource.Body = &dnsmessage.AAAAResource{AAAA: address.As16()}
		default:
			continue
		}
		message.Answers = append(message.Answers, resource)
	}
	return message.Pack()
}

// counter counts the requests that reach a server.
type counter struct{ atomic.Int64 }

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.Add(1)
	_, _ = io.WriteString(w, "hello from "+r.Host)
}
