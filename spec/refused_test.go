package spec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/spec"
)

// TestWhatIsRefusedAndWhere reads every file of testdata/refused. Its name says
// what is wrong; its whole sentence stands in refused.txt.
func TestWhatIsRefusedAndWhere(t *testing.T) {
	listed, err := os.ReadFile("testdata/refused/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	sentences := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		file, _, _ := strings.Cut(line, ":")
		sentences[file] = strings.TrimSuffix(line, "\n")
	}
	files, err := filepath.Glob("testdata/refused/*.yaml")
	if err != nil || len(files) != len(sentences) {
		t.Fatalf("%d files and %d sentences: %v", len(files), len(sentences), err)
	}
	for _, path := range files {
		file := filepath.Base(path)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = spec.Parse(file, data)
		if _, is := errors.AsType[*failure.SpecInvalid](err); !is || err.Error() != sentences[file] {
			t.Errorf("got  %v\nwant %s", err, sentences[file])
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: a secret that stands in the wrong place is repeated: %v", file, err)
		}
	}
}

func TestWhatIsAccepted(t *testing.T) {
	const head = "name: s\nmodel: {model: m}\nmcp_servers:\n  - name: a\n    url: https://example.com/\n"
	for name, text := range map[string]string{
		"an alias of any form":       "name: _\nmodel: {model: m}\nmcp_servers: [{name: A.b-c_d, url: http://127.0.0.1:8080}]",
		"a tool that looks like one": head + "tools: [a_find, b__find, ab__find]",
		"every tool":                 head + "    allow: ['*']",
		"a tool of any name":         head + "    allow: [größe, Get File, 'a/b.*']",
		"a credential in a folder":   head + "    credential: team/github.token",
		"defaults of oauth":          head + "    oauth: {}",
		"a key and no method":        head + "    oauth: {private_key_credential: k}",
		"a registered secret":        head + "    oauth: {token_endpoint_auth_method: client_secret_post}",
		"a document and its key":     head + "    oauth: {cimd_url: 'https://app.example.com/c.json', private_key_credential: k, allow_dynamic_registration: false}",
		"a public client":            head + "    oauth: {grant: authorization_code, token_endpoint_auth_method: none, redirect_uris: ['http://localhost:1/cb', 'http://[::1]/cb']}",
		"an issuer on loopback":      head + "    oauth: {issuer: 'http://127.0.0.1:9000/tenant/'}",
		"all limits":                 "{name: s, model: {model: m}, limits: {max_turns: 1000, deadline: 24h}}",
	} {
		if _, err := spec.Parse("f", []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/refused/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(whole))
	f.Add([]byte(written))
	f.Add([]byte("{name: s, instructions: \"a\\u0085b\\u2028c\\u00a0 \\ufeff\\td\", model: {model: m}}"))
	f.Add([]byte("name: s\nmodel: {model: m}\ninstructions: |\n  # a\n\n   b: 'c'\n  \\n \U0001F600 \u2028\n"))
	f.Add([]byte(`{"name":"s","model":{"model":"m"},"mcp_servers":[{"name":"a","url":"https://e/"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		version, err := spec.Parse("f", data)
		if err != nil {
			if failure.KindOf(err) != failure.KindSpecInvalid || !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v", err)
			}
			return
		}
		again, err := spec.New(version.Spec())
		if err != nil || again.Hash() != version.Hash() {
			t.Fatalf("the Version does not stand: %v", err)
		}
		// The canonical form is a Spec, the same one, in whatever order and however
		// it is indented.
		if again, err = spec.Parse("f", version.Canonical()); err != nil || again.Hash() != version.Hash() || !bytes.Equal(again.Canonical(), version.Canonical()) {
			t.Fatalf("the canonical form %s is another Spec: %v", version.Canonical(), err)
		}
		var members map[string]any
		decoder := json.NewDecoder(bytes.NewReader(version.Canonical()))
		decoder.UseNumber()
		if err := decoder.Decode(&members); err != nil {
			t.Fatal(err)
		}
		indented, err := json.MarshalIndent(members, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if again, err = spec.Parse("f", bytes.ReplaceAll(indented, []byte("\n"), []byte("\r\n"))); err != nil || again.Hash() != version.Hash() {
			t.Fatalf("%s is another Spec: %v", indented, err)
		}
	})
}
