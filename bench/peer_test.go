package bench_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// asPeer has the test binary be a server; its value is the kind.
const asPeer = "PSYCH_BENCH_PEER"

// The kinds of servers.
const (
	kindStub = "stub"
	kindTLS  = "stub over HTTP/2"
	kindSDK  = "go-sdk"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(asPeer); kind != "" {
		servePeer(kind)
		return
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// servePeer serves until standard input ends, which is when the parent does.
func servePeer(kind string) {
	server := httptest.NewUnstartedServer(newStub())
	switch kind {
	case kindTLS:
		server.EnableHTTP2 = true
		server.StartTLS()
	case kindSDK:
		server.Config.Handler = sdkServer()
		server.Start()
	default:
		server.Start()
	}
	certificate := ""
	if server.Certificate() != nil {
		certificate = base64.StdEncoding.EncodeToString(server.Certificate().Raw)
	}
	fmt.Println(server.URL, certificate)
	_, _ = io.Copy(io.Discard, os.Stdin)
	server.CloseClientConnections()
}

func sdkServer() http.Handler {
	type input struct {
		Text string `json:"text"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}}, nil, nil
		})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{JSONResponse: true})
}

// peer is a server in a process of its own.
type peer struct {
	origin string
	// roots believe its certificate; nil without TLS.
	roots *x509.CertPool
}

// newPeer starts a server that ends with the test.
func newPeer(t testing.TB, kind string) peer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self)
	command.Env = append(os.Environ(), asPeer+"="+kind)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the server of kind %s does not start: %v", kind, err)
	}
	origin, certificate, _ := strings.Cut(strings.TrimSpace(line), " ")
	p := peer{origin: origin}
	if certificate != "" {
		raw, err := base64.StdEncoding.DecodeString(certificate)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := x509.ParseCertificate(raw)
		if err != nil {
			t.Fatal(err)
		}
		p.roots = x509.NewCertPool()
		p.roots.AddCert(parsed)
	}
	return p
}

// client is a client of the server that keeps no connections.
func (p peer) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: p.roots, MinVersion: tls.VersionTLS12},
	}}
}

// heard is how many requests of a method a stub has had.
func (p peer) heard(t testing.TB, method string) int {
	t.Helper()
	response, err := p.client().Get(p.origin + "/heard")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var all map[string]int
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all[method]
}
