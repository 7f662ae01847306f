package messages_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

func TestEqualServersHaveOneCanonicalURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://MCP.Example.com":               "https://mcp.example.com/",
		"HTTPS://mcp.example.com:443/":          "https://mcp.example.com/",
		"http://mcp.example.com:80/a":           "http://mcp.example.com/a",
		"http://mcp.example.com:8080/a":         "http://mcp.example.com:8080/a",
		"https://mcp.example.com/%7Euser/%2f%3": "",
		"https://mcp.example.com/%7Euser/%2fa":  "https://mcp.example.com/~user/%2Fa",
		"https://mcp.example.com/a/":            "https://mcp.example.com/a/",
		"https://mcp.example.com/a?b=%41&c=%2f": "https://mcp.example.com/a?b=A&c=%2F",
		"https://[::1]:443/a":                   "https://[::1]/a",
		"https://[FE80::1]:8443/a":              "https://[fe80::1]:8443/a",
		"https://user:hidden@mcp.example.com/":  "",
		"https://mcp.example.com/#part":         "",
		"https://mcp.example.com/#":             "",
		"https://mcp.example.com:99999/":        "",
		"https://mcp.example.com:0/":            "",
		"ftp://mcp.example.com/":                "",
		"mcp.example.com":                       "",
		"https://":                              "",
		"/path":                                 "",
		"":                                      "",
	} {
		got, err := messages.CanonicalURL(raw)
		if want == "" {
			if failure.KindOf(err) != failure.KindSpecInvalid || strings.Contains(fmt.Sprint(err), "hidden") {
				t.Errorf("%q is %q (%v)", raw, got, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q is %q (%v), want %q", raw, got, err, want)
		}
		if again, err := messages.CanonicalURL(got); err != nil || again != got {
			t.Errorf("%q is not canonical: %q (%v)", got, again, err)
		}
	}
}

func key(t *rapid.T, label string) (messages.PoolKey, string) {
	part := rapid.StringMatching(`[ab:0-9]{1,3}`)
	scope := messages.Scope{Tenant: part.Draw(t, label+" tenant"), Principal: part.Draw(t, label+" principal")}
	url := "https://example.com/" + part.Draw(t, label+" path")
	transport := rapid.SampledFrom([]messages.Transport{messages.TransportHTTP, messages.TransportSSE}).Draw(t, label+" transport")
	identity := part.Draw(t, label+" identity")
	made, err := messages.NewPoolKey(scope, url, transport, identity)
	if err != nil {
		t.Fatal(err)
	}
	return made, fmt.Sprintf("%q", []string{scope.Tenant, scope.Principal, url, string(transport), identity})
}

func TestKeysAndTheirDigestsAreEqualExactlyWhereAllPartsAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, partsOfA := key(t, "a")
		b, partsOfB := key(t, "b")
		equal := partsOfA == partsOfB
		if (a == b) != equal || (a.Digest() == b.Digest()) != equal {
			t.Fatalf("%s and %s", partsOfA, partsOfB)
		}
		sent, err := proto.Marshal(a.Message())
		if err != nil {
			t.Fatal(err)
		}
		var came messages.Key
		if err := proto.Unmarshal(sent, &came); err != nil {
			t.Fatal(err)
		}
		if back, err := messages.PoolKeyOf(&came); err != nil || back != a {
			t.Fatalf("a key came back as %v (%v)", back, err)
		}
	})
}

func TestAKeyNeedsAScopeAndATransport(t *testing.T) {
	for name, build := range map[string]func() (messages.PoolKey, error){
		"no tenant": func() (messages.PoolKey, error) {
			return messages.NewPoolKey(messages.Scope{}, "https://e/", messages.TransportHTTP, "")
		},
		"a control character": func() (messages.PoolKey, error) {
			return messages.NewPoolKey(messages.Scope{Tenant: "a\nb"}, "https://e/", messages.TransportHTTP, "")
		},
		"stdio": func() (messages.PoolKey, error) {
			return messages.NewPoolKey(messages.Scope{Tenant: "a"}, "https://e/", "stdio", "")
		},
		"an empty message": func() (messages.PoolKey, error) { return messages.PoolKeyOf(nil) },
	} {
		if made, err := build(); failure.KindOf(err) != failure.KindSpecInvalid {
			t.Errorf("%s: got %v (%v)", name, made, err)
		}
	}
}

func TestScopes(t *testing.T) {
	for text, want := range map[string]messages.Scope{
		"acme": {Tenant: "acme"}, "acme/ann": {Tenant: "acme", Principal: "ann"}, "acme/a/b": {Tenant: "acme", Principal: "a/b"},
	} {
		if got, err := messages.ParseScope(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q is %+v (%v)", text, got, err)
		}
	}
	for _, text := range []string{"", "/", "/ann", "acme/"} {
		if got, err := messages.ParseScope(text); failure.KindOf(err) != failure.KindSpecInvalid {
			t.Errorf("%q is %+v (%v)", text, got, err)
		}
	}
}

func TestAFailureTravelsWithoutItsCause(t *testing.T) {
	err := failure.New(failure.KindBusy, "full", errors.New("planted-cause"))
	back := messages.FailureOf(err).Err()
	if failure.KindOf(back) != failure.KindBusy || back.Error() != "full" || errors.Unwrap(back) != nil {
		t.Errorf("it came back as %v", back)
	}
	if odd := messages.FailureOf(errors.New("planted-cause")); strings.Contains(odd.String(), "planted") {
		t.Errorf("an untyped error travels as %v", odd)
	}
	if messages.FailureOf(nil).Err() != nil {
		t.Error("no error travels as one")
	}
}

func TestEveryQuestionKnowsItsFailure(t *testing.T) {
	why := &messages.Failure{Kind: "Busy", Message: "full"}
	for _, question := range []messages.Question{
		&messages.GetCatalogue{RequestId: "1"}, &messages.CallTool{CallId: "1"},
		&messages.ListConnections{RequestId: "1"}, &messages.Disconnect{RequestId: "1"},
	} {
		answer := question.Failed(why).(interface{ GetFailure() *messages.Failure })
		if question.QuestionID() != "1" || answer.GetFailure() != why {
			t.Errorf("%T answers %v", question, answer)
		}
	}
}
