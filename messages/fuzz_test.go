package messages_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// A canonical URL is its own canonical form, and a key that travels in a message
// is the same key where it arrives: otherwise a connection would refuse its own
// messages.
func FuzzCanonicalURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.com", "HTTP://EXAMPLE.com:80/%7euser/%2f?q=%41&r=%zz", "http://h/?%%34%31", "http://[fe80::1%25eth0]:8080/",
		"http://h:443/?", "https://[::FFFF:10.0.0.1]/a/../%2E%2e/b", "http://größe.example/ä", "http://h/%", "http://user:hunter2@h/", "http://h/#hunter2",
		"http://h:0/", "http://h:99999/", "http://a:b:80/", "http://%C3%B6/", "http:h", "http://h\x7f/", "http://\xff/\xff?\xff", "http://h/a b?c d", "http://İ/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		canonical, err := messages.CanonicalURL(raw)
		if err != nil {
			if failure.KindOf(err) != failure.KindSpecInvalid || strings.Contains(err.Error(), "hunter2") || len(err.Error()) > 200 {
				t.Fatalf("got %v", err)
			}
			return
		}
		again, err := messages.CanonicalURL(canonical)
		if err != nil || again != canonical {
			t.Fatalf("%q is %q, which is %q (%v)", raw, canonical, again, err)
		}
		before, errBefore := url.Parse(raw)
		after, errAfter := url.Parse(canonical)
		if errBefore != nil || errAfter != nil || !strings.EqualFold(before.Scheme, after.Scheme) || after.User != nil || after.Fragment != "" {
			t.Fatalf("%q became %q", raw, canonical)
		}
		if strings.TrimPrefix(before.Path, "/") != strings.TrimPrefix(after.Path, "/") {
			t.Fatalf("the path %q became %q", before.Path, after.Path)
		}
		key, err := messages.NewPoolKey(messages.Scope{Tenant: "acme"}, raw, messages.TransportHTTP, "id")
		if err != nil {
			t.Fatal(err)
		}
		if arrived, err := messages.PoolKeyOf(key.Message()); err != nil || arrived != key || arrived.Digest() != key.Digest() {
			t.Fatalf("%v arrived as %v (%v)", key, arrived, err)
		}
	})
}

// A scope that was read is read the same from what it prints.
func FuzzScope(f *testing.F) {
	for _, seed := range []string{"acme", "acme/ann", "a/b/c", "/", "a/", "", "a\x00", "a/\x7f", "*", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		scope, err := messages.ParseScope(text)
		if err != nil {
			if failure.KindOf(err) != failure.KindSpecInvalid {
				t.Fatal(err)
			}
			return
		}
		if again, err := messages.ParseScope(scope.String()); err != nil || again != scope || scope.Tenant == "" {
			t.Fatalf("%q is %#v, which reads as %#v (%v)", text, scope, again, err)
		}
	})
}
