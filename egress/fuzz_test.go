package egress

import (
	"net/netip"
	"testing"
)

// A host is its own canonical form, and its pattern matches it.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{
		"example.com", "EXAMPLE.com.", "１２７.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "2130706433", "0x7f.1", "größe.example", "a..", "*.a", "", ".", "[::1]", "xn--a", "1.2.3.4.", "%31", "a b", "\xff", "ⒶⒷ.example", "K.example",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := hostOf(text)
		if err != nil {
			return
		}
		again, err := hostOf(at.String())
		if err != nil || again != at {
			t.Fatalf("%q is %q, which is %q (%v)", text, at, again, err)
		}
		if (at.name == "") != at.address.IsValid() || at.address.Is4In6() || at.address.Zone() != "" {
			t.Fatalf("%q is %#v", text, at)
		}
		rule, err := patternOf(at.String())
		if err == nil && (at.name == "" || isDomain(at.name)) && !setOf([]host{rule}).matches(at) {
			t.Fatalf("the rule %q does not match the host that it names", at)
		}
	})
}

// A tenant only narrows: what two sets of rules open together, each of them opens.
func FuzzNarrow(f *testing.F) {
	f.Add("*.example.com", "a.example.com", "*.b.example.com", "10.0.0.1", "x.b.example.com")
	f.Add("*.a", "*.a.a", "a", "*.a.a.a", "a.a.a.a")
	f.Add("::1", "*.com", "::ffff:127.0.0.1", "127.0.0.1", "127.0.0.1")
	f.Fuzz(func(t *testing.T, a, b, c, d, asked string) {
		var patterns []host
		for _, text := range []string{a, b, c, d} {
			pattern, err := patternOf(text)
			if err != nil {
				return
			}
			patterns = append(patterns, pattern)
		}
		at, err := hostOf(asked)
		if err != nil {
			return
		}
		open := func(r hostRules) bool { return (r.only == nil || r.only.matches(at)) && !r.denied.matches(at) }
		one := hostRules{only: setOf(patterns[:2]), denied: setOf(patterns[3:])}
		other := hostRules{only: setOf(patterns[1:3]), denied: setOf(patterns[:1])}
		for _, pair := range [][2]hostRules{{one, other}, {other, one}, {one, {}}, {{}, other}, {one, one}} {
			both := pair[0].narrow(pair[1])
			if open(both) != (open(pair[0]) && open(pair[1])) {
				t.Fatalf("%q with %q and %q: together %v", at, pair[0].key(), pair[1].key(), open(both))
			}
			if both.key() != pair[1].narrow(pair[0]).key() {
				t.Fatalf("%q and %q", both.key(), pair[1].narrow(pair[0]).key())
			}
		}
	})
}

// No address that is not public is open by itself, in whatever form it comes.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"127.0.0.1", "10.1.2.3", "169.254.169.254", "168.63.129.16", "100.64.0.1", "0.0.0.0", "224.0.0.1", "::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "8.8.8.8", "2606:4700::1111",
	} {
		address := netip.MustParseAddr(seed).As16()
		f.Add(address[:])
	}
	closedRules, err := newAddressRules("egress", nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		address, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		inner := plain(address)
		why := closedRules.closed(address)
		if why != closedRules.closed(inner) {
			t.Fatalf("%s and %s are judged as two", address, inner)
		}
		if embedded, form := embedded(inner); form != "" {
			inner = embedded
		}
		special := inner.IsPrivate() || inner.IsLoopback() || inner.IsLinkLocalUnicast() || inner.IsMulticast() || inner.IsUnspecified() || shared.Contains(inner)
		if special && why == "" {
			t.Fatalf("%s is open, and stands for %s", address, inner)
		}
	})
}
