package config_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/config"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model/openai"
)

// A host that a configuration may name is one that egress can hold calls to: a
// file that is accepted is one that a process can start with.
func FuzzHosts(f *testing.F) {
	for _, seed := range []string{
		"example.com", "*.example.com", "bücher.example", "10.0.0.7", "[::1]", "::1", "*.10.0.0.1", "example.com.", "-a.example", "a_b.example",
		strings.Repeat("a", 64) + ".example", "٠١٢.example", "x..y", "[", "[]", "1.2.3.4.", "a.example..", "fe80::1%eth0", "xn--a", "⒈.example", "ß.example", "[a]", "*.[::1]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		quoted := strings.ReplaceAll(host, "'", "''")
		got, err := config.Parse("f", []byte("egress: {deny_hosts: ['"+quoted+"']}"))
		if err != nil || !slices.Equal(got.Egress.DenyHosts, []string{host}) {
			return
		}
		out, err := egress.New(egress.Options{Policy: egress.Policy{DenyHosts: got.Egress.DenyHosts, AllowHosts: got.Egress.DenyHosts}})
		if err != nil {
			t.Fatalf("%q is accepted, and the process does not start: %v", host, err)
		}
		out.Close()
	})
}

// An endpoint that a configuration may name is one that a model can be made of.
func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{
		"https://api.openai.com/v1", "http://127.0.0.1:9000/v1", "https://[::1]:80/", "https://h:0/", "https://h:99999/", "https://h:/", "https://%41/", "https://größe.example/", "https://.", "https://h\u00ad/", "https://a b/", "https://[fe80::1%25lo]/v1",
		"https://user:hunter2@h/", "https://h?key=hunter2", "https://xn--a/", "https://a:b:80/", "HTTPS://h/", "https://-h-./v1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, base string) {
		quoted := strings.ReplaceAll(base, "'", "''")
		got, err := config.Parse("f", []byte("model: {base_url: '"+quoted+"'}"))
		if err != nil {
			if failure.KindOf(err) != failure.KindSpecInvalid || strings.Contains(base, "hunter2") && strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("got %v", err)
			}
			return
		}
		if got.Model == nil || got.Model.BaseURL != base {
			return
		}
		if _, err := openai.New(openai.Options{BaseURL: base, Client: http.DefaultClient}); err != nil {
			t.Fatalf("%q is accepted, and no model can be made of it: %v", base, err)
		}
		out, err := egress.New(egress.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if _, err := out.ModelClient(base); err != nil {
			t.Fatalf("%q is accepted, and it cannot be reached: %v", base, err)
		}
	})
}
