package egress_test

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/idna"
	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
)

func TestSchemeAndFormOfAURL(t *testing.T) {
	out := open(t, egress.Options{})
	for raw, sentence := range map[string]string{
		"http://example.com/":                    "http://example.com is plain http, which egress.allow_http does not open",
		"HTTP://Example.COM:8080/x":              "http://example.com:8080 is plain http",
		"http://[fd00::1]:80/":                   "http://[fd00::1] is plain http",
		"ftp://example.com/":                     `has the scheme "ftp"`,
		"file:///etc/passwd":                     `has the scheme "file"`,
		"javascript:alert(1)":                    `has the scheme "javascript"`,
		"example.com/mcp":                        "has no scheme",
		"":                                       "has no scheme",
		"https:///mcp":                           "names no host",
		"https:example.com":                      "names no host",
		"https://./":                             "names no host",
		"https://ex\u2488ample.com/":             "names no host",
		"https://user:hidden@example.com/":       "holds a user name or a password",
		"https://example.com@127.0.0.1/":         "holds a user name or a password",
		"https://example.com:hidden/?key=hidden": "cannot be read",
		"https://exa mple.com/":                  "cannot be read",
		"https://%31%32%37.0.0.1/":               "cannot be read",
	} {
		t.Run(raw, func(t *testing.T) {
			expectDenied(t, out.Judge("", raw), sentence)
		})
	}
}

func TestOpeningANetworkDoesNotOpenPlainHTTP(t *testing.T) {
	closed := open(t, egress.Options{Policy: egress.Policy{AllowCIDRs: prefixes("127.0.0.1/32")}})
	expectDenied(t, closed.Judge("", "http://127.0.0.1:8080/mcp"), "plain http, which egress.allow_http does not open")
	if err := closed.Judge("", "https://127.0.0.1:8080/mcp"); err != nil {
		t.Fatal(err)
	}
	cleartext := open(t, egress.Options{Policy: egress.Policy{AllowHTTP: true}})
	expectDenied(t, cleartext.Judge("", "http://127.0.0.1:8080/mcp"), "127.0.0.1 is a loopback address")
	if err := cleartext.Judge("", "http://example.com/"); err != nil {
		t.Fatal(err)
	}
}

func TestHostRules(t *testing.T) {
	everywhere := prefixes("0.0.0.0/0", "::/0")
	for name, test := range map[string]struct {
		policy       egress.Policy
		open, closed []string
	}{
		"an exact name": {
			egress.Policy{AllowHosts: []string{"Example.com."}},
			[]string{"example.com", "EXAMPLE.com", "example.com.", "example.com:8443"},
			[]string{"www.example.com", "notexample.com", "example.com.evil.net", "127.0.0.1"},
		},
		"a domain": {
			egress.Policy{AllowHosts: []string{"*.Example.com"}},
			[]string{"a.example.com", "a.b.example.com", "A.EXAMPLE.COM."},
			[]string{"example.com", "notexample.com", "a.example.com.evil.net", "example.org"},
		},
		"a denied domain inside an open one": {
			egress.Policy{AllowHosts: []string{"*.example.com"}, DenyHosts: []string{"*.int.example.com", "x.example.com"}},
			[]string{"a.example.com", "int.example.com"},
			[]string{"a.int.example.com", "x.example.com", "x.example.com.", "X.example.com"},
		},
		"a denied name that is also allowed": {
			egress.Policy{AllowHosts: []string{"example.com"}, DenyHosts: []string{"EXAMPLE.COM"}},
			nil, []string{"example.com", "example.com."},
		},
		"a name outside ASCII": {
			egress.Policy{DenyHosts: []string{"bücher.example", "*.xn--mnchen-3ya.example"}},
			[]string{"bucher.example"},
			[]string{"bücher.example", "BÜCHER.example", "xn--bcher-kva.example", "a.münchen.example", "bu\u0308cher.example", "bücher。example"},
		},
		"an address": {
			egress.Policy{AllowCIDRs: everywhere, DenyHosts: []string{"10.0.0.1", "[FD00::1]", "::2"}},
			[]string{"10.0.0.2", "[fd00::2]"},
			[]string{"10.0.0.1", "10.0.0.1.", "[::ffff:10.0.0.1]", "[::ffff:a00:1]", "[fd00:0::0:1]", "[fd00::1%25eth0]", "[0::2]", "１0.0.0.1"},
		},
		"only an address": {
			egress.Policy{AllowCIDRs: everywhere, AllowHosts: []string{"::ffff:10.0.0.1"}},
			[]string{"10.0.0.1", "[::ffff:10.0.0.1]"},
			[]string{"10.0.0.2", "example.com"},
		},
		"a top level domain does not take addresses": {
			egress.Policy{AllowCIDRs: everywhere, DenyHosts: []string{"*.1", "*.0.1"}},
			[]string{"10.0.0.1"},
			[]string{"0x7f.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := open(t, egress.Options{Policy: test.policy})
			for _, host := range test.open {
				if err := out.Judge("", "https://"+host+"/"); err != nil {
					t.Errorf("%s: %v", host, err)
				}
			}
			for _, host := range test.closed {
				if err := out.Judge("", "https://"+host+"/"); err == nil {
					t.Errorf("%s is open", host)
				} else {
					expectDenied(t, err, "_hosts")
				}
			}
		})
	}
}

func TestATenantNarrows(t *testing.T) {
	out := open(t, egress.Options{
		Policy: egress.Policy{AllowHosts: []string{"*.example.com", "example.org"}, DenyHosts: []string{"bad.example.com"}},
		Tenants: map[string]egress.Policy{
			"denies":   {DenyHosts: []string{"mcp.example.com"}},
			"picks":    {AllowHosts: []string{"mcp.example.com", "bad.example.com", "elsewhere.net"}},
			"nothing":  {AllowHosts: []string{"elsewhere.net"}},
			"subtree":  {AllowHosts: []string{"*.eu.example.com", "*.org"}},
			"nobody":   {},
			"widening": {AllowHosts: []string{"*.com"}},
		},
	})
	hosts := []string{"mcp.example.com", "bad.example.com", "a.eu.example.com", "example.org", "elsewhere.net", "other.com"}
	for tenant, want := range map[string][]string{
		"":         {"mcp.example.com", "a.eu.example.com", "example.org"},
		"unknown":  {"mcp.example.com", "a.eu.example.com", "example.org"},
		"nobody":   {"mcp.example.com", "a.eu.example.com", "example.org"},
		"denies":   {"a.eu.example.com", "example.org"},
		"picks":    {"mcp.example.com"},
		"nothing":  nil,
		"subtree":  {"a.eu.example.com", "example.org"},
		"widening": {"mcp.example.com", "a.eu.example.com"},
	} {
		var got []string
		for _, host := range hosts {
			if out.Judge(tenant, "https://"+host) == nil {
				got = append(got, host)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q may reach %v, want %v", tenant, got, want)
		}
	}
}

func TestPoliciesThatCannotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		options  egress.Options
		sentence string
	}{
		"a URL":                 {egress.Options{Policy: egress.Policy{AllowHosts: []string{"https://example.com"}}}, `egress.allow_hosts holds "https://example.com"`},
		"a port":                {egress.Options{Policy: egress.Policy{DenyHosts: []string{"example.com:80"}}}, `egress.deny_hosts holds "example.com:80"`},
		"a network":             {egress.Options{Policy: egress.Policy{DenyHosts: []string{"10.0.0.0/8"}}}, "egress.deny_hosts"},
		"nothing":               {egress.Options{Policy: egress.Policy{DenyHosts: []string{""}}}, "egress.deny_hosts"},
		"every host":            {egress.Options{Policy: egress.Policy{DenyHosts: []string{"*"}}}, "egress.deny_hosts"},
		"an empty domain":       {egress.Options{Policy: egress.Policy{DenyHosts: []string{"*."}}}, "egress.deny_hosts"},
		"a star inside":         {egress.Options{Policy: egress.Policy{DenyHosts: []string{"a.*.com"}}}, "egress.deny_hosts"},
		"a part of a label":     {egress.Options{Policy: egress.Policy{DenyHosts: []string{"*a.com"}}}, "egress.deny_hosts"},
		"an address beneath":    {egress.Options{Policy: egress.Policy{DenyHosts: []string{"*.10.0.0.1"}}}, "egress.deny_hosts"},
		"an empty label":        {egress.Options{Policy: egress.Policy{DenyHosts: []string{"a..com"}}}, "egress.deny_hosts"},
		"half a bracket":        {egress.Options{Policy: egress.Policy{DenyHosts: []string{"[::1"}}}, "egress.deny_hosts"},
		"a space":               {egress.Options{Policy: egress.Policy{DenyHosts: []string{" a.com"}}}, "egress.deny_hosts"},
		"no domain":             {egress.Options{Policy: egress.Policy{DenyHosts: []string{"a\u2488b.com"}}}, "egress.deny_hosts"},
		"no network":            {egress.Options{Policy: egress.Policy{AllowCIDRs: []netip.Prefix{{}}}}, "egress.allow_cidrs"},
		"a mapped network":      {egress.Options{Policy: egress.Policy{AllowCIDRs: prefixes("::ffff:10.0.0.0/104")}}, "write it as IPv4"},
		"a tenant's networks":   {egress.Options{Tenants: map[string]egress.Policy{"acme": {AllowCIDRs: prefixes("10.0.0.0/8")}}}, "tenants.acme.egress may only narrow"},
		"a tenant's plain http": {egress.Options{Tenants: map[string]egress.Policy{"acme": {AllowHTTP: true}}}, "tenants.acme.egress may only narrow"},
		"a tenant's host":       {egress.Options{Tenants: map[string]egress.Policy{"acme": {DenyHosts: []string{"a/b"}}}}, `tenants.acme.egress.deny_hosts holds "a/b"`},
		"a tiny ceiling":        {egress.Options{MaxResponseBytes: 1023}, "max_response_bytes is 1023, which is outside 1024 to 1073741824"},
		"a negative ceiling":    {egress.Options{MaxResponseBytes: -1}, "max_response_bytes is -1"},
		"a huge ceiling":        {egress.Options{MaxResponseBytes: 1<<30 + 1}, "max_response_bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := egress.New(test.options)
			if _, ok := errors.AsType[*failure.SpecInvalid](err); !ok || !strings.Contains(err.Error(), test.sentence) {
				t.Fatalf("%v, want %q", err, test.sentence)
			}
		})
	}
}

// Whatever a tenant's policy says, it opens a host exactly where the process's
// policy and its own both do, each read in the plainest way.
func TestNarrowingOpensNothing(t *testing.T) {
	name := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 4),
		func(labels []string) string { return strings.Join(labels, ".") })
	address := rapid.SampledFrom([]string{"8.8.8.8", "8.8.4.4", "2606:4700::1111"})
	wildcard := rapid.Map(name, func(domain string) string { return "*." + domain })
	patterns := rapid.SliceOfN(rapid.OneOf(name, wildcard, address), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		process := egress.Policy{AllowHosts: patterns.Draw(t, "allow"), DenyHosts: patterns.Draw(t, "deny")}
		tenant := egress.Policy{AllowHosts: patterns.Draw(t, "tenant allow"), DenyHosts: patterns.Draw(t, "tenant deny")}
		out, err := egress.New(egress.Options{Policy: process, Tenants: map[string]egress.Policy{"acme": tenant}})
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		host := rapid.OneOf(name, address).Draw(t, "host")
		url := "https://" + host
		if strings.Contains(host, ":") {
			url = "https://[" + host + "]"
		}
		want := plainly(process, host)
		if got := out.Judge("", url) == nil; got != want {
			t.Fatalf("the process: open is %v, want %v", got, want)
		}
		want = want && plainly(tenant, host)
		if got := out.Judge("acme", url) == nil; got != want {
			t.Fatalf("the tenant: open is %v, want %v", got, want)
		}
	})
}

func plainly(policy egress.Policy, host string) bool {
	matches := func(pattern string) bool {
		domain, wildcard := strings.CutPrefix(pattern, "*")
		return host == pattern || wildcard && strings.HasSuffix(host, domain)
	}
	return !slices.ContainsFunc(policy.DenyHosts, matches) &&
		(len(policy.AllowHosts) == 0 || slices.ContainsFunc(policy.AllowHosts, matches))
}

// Of an allowed public name and two allowed loopback addresses that no network
// opens, only the name can be open, however it is written.
func FuzzJudge(f *testing.F) {
	for _, raw := range []string{
		"https://example.com", "https://127.0.0.1", "https://[::1]:80/x?y#z", "https://１２７.0.0.1",
		"https://a@b", "https://[fe80::1%25lo]", "//", "https://%5B::1]", "http://EXAMPLE.com.",
	} {
		f.Add(raw)
	}
	out, err := egress.New(egress.Options{Policy: egress.Policy{AllowHosts: []string{"127.0.0.1", "::1", "example.com"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(out.Close)
	f.Fuzz(func(t *testing.T, raw string) {
		if err := out.Judge("", raw); err != nil {
			expectDenied(t, err, "")
			return
		}
		parsed, err := url.Parse(raw)
		if err != nil {
			t.Fatalf("%q is open and no URL", raw)
		}
		name, err := idna.Lookup.ToASCII(strings.TrimRight(strings.ToLower(parsed.Hostname()), "."))
		if err != nil || strings.TrimRight(name, ".") != "example.com" || parsed.Scheme != "https" {
			t.Fatalf("%q is open, and only https://example.com could be", raw)
		}
	})
}
