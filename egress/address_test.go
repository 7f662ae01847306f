package egress_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/egress"
)

// closedAddresses are what is closed by default, with what each is called.
var closedAddresses = map[string]string{
	"127.0.0.1":              "a loopback address",
	"127.255.255.254":        "a loopback address",
	"10.0.0.1":               "a private address",
	"172.16.0.1":             "a private address",
	"172.31.255.255":         "a private address",
	"192.168.1.1":            "a private address",
	"169.254.1.1":            "a link-local address",
	"169.254.169.254":        "a cloud metadata address",
	"168.63.129.16":          "a cloud metadata address",
	"100.100.100.200":        "a cloud metadata address",
	"192.0.0.192":            "a cloud metadata address",
	"100.64.0.1":             "a carrier's shared address",
	"0.0.0.0":                "the unspecified address",
	"0.1.2.3":                "a special-purpose address",
	"192.0.2.1":              "a special-purpose address",
	"198.18.0.1":             "a special-purpose address",
	"224.0.0.1":              "a multicast address",
	"239.1.2.3":              "a multicast address",
	"240.0.0.1":              "a special-purpose address",
	"255.255.255.255":        "a special-purpose address",
	"::":                     "the unspecified address",
	"::1":                    "a loopback address",
	"::127.0.0.1":            "a special-purpose address",
	"::ffff:10.0.0.1":        "a private address",
	"::ffff:127.0.0.1":       "a loopback address",
	"::ffff:a9fe:a9fe":       "a cloud metadata address",
	"::ffff:0:10.0.0.1":      "a special-purpose address",
	"64:ff9b::10.0.0.1":      "a NAT64 address",
	"64:ff9b::8.8.8.8":       "a NAT64 address",
	"64:ff9b:1::10.0.0.1":    "a special-purpose address",
	"2002:7f00:1::":          "a 6to4 address",
	"2002:808:808::1":        "a 6to4 address",
	"2001::1":                "a special-purpose address",
	"2001:db8::1":            "a special-purpose address",
	"fd00::1":                "a private address",
	"fd00:ec2::254":          "a cloud metadata address",
	"fe80::1":                "a link-local address",
	"fe80::1%lo":             "a link-local address",
	"fec0::1":                "a special-purpose address",
	"ff02::1":                "a multicast address",
	"4000::1":                "a special-purpose address",
	"0:0:0:0:0:ffff:7f00:1":  "a loopback address",
	"0000:0000::ffff:c0a8:1": "a private address",
}

// inURL writes an address as a URL does.
func inURL(address string) string {
	if strings.Contains(address, ":") {
		return (&url.URL{Scheme: "https", Host: "[" + address + "]", Path: "/"}).String()
	}
	return "https://" + address + "/"
}

func TestSpecialAddressesAreClosed(t *testing.T) {
	out := open(t, egress.Options{})
	for address, class := range closedAddresses {
		t.Run(address, func(t *testing.T) {
			err := out.Judge("", inURL(address))
			expectDenied(t, err, " is "+class+", which egress.allow_cidrs does not open")
			_, err = get(t, out.Client("acme"), inURL(address))
			expectDenied(t, err, " is "+class+", which egress.allow_cidrs does not open")
		})
	}
}

func TestPublicAddressesAreOpenOnAnyPort(t *testing.T) {
	out := open(t, egress.Options{})
	for _, to := range []string{
		"https://8.8.8.8/", "https://8.8.8.8:8443/mcp", "https://1.1.1.1:22/", "https://172.32.0.1/", "https://100.128.0.1/",
		"https://[2606:4700::1111]/", "https://[2606:4700::1111]:9000/", "https://[::ffff:8.8.8.8]/", "https://example.com:1/",
	} {
		if err := out.Judge("", to); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestNetworksOpenTheirAddressesAndNoOthers(t *testing.T) {
	for network, want := range map[string]struct{ opened, closed []string }{
		"127.0.0.1/32":   {[]string{"127.0.0.1", "::ffff:127.0.0.1"}, []string{"127.0.0.2", "::1", "64:ff9b::127.0.0.1"}},
		"10.1.2.3/8":     {[]string{"10.0.0.1", "::ffff:10.9.9.9"}, []string{"192.168.0.1", "2002:a00:1::"}},
		"fd00::/8":       {[]string{"fd00::1"}, []string{"fc00::1", "10.0.0.1"}},
		"fe80::/10":      {[]string{"fe80::1", "fe80::1%lo"}, []string{"fd00::1"}},
		"64:ff9b::/96":   {[]string{"64:ff9b::8.8.8.8"}, []string{"64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "10.0.0.1"}},
		"2002::/16":      {[]string{"2002:808:808::1"}, []string{"2002:7f00:1::", "2002:a00:1::"}},
		"0.0.0.0/0":      {[]string{"10.0.0.1", "169.254.169.254"}, []string{"::1"}},
		"::/0":           {[]string{"::1", "fd00::1"}, []string{"10.0.0.1", "64:ff9b::10.0.0.1", "::ffff:127.0.0.1"}},
		"168.63.0.0/16":  {[]string{"168.63.129.16", "168.63.1.1"}, []string{"169.254.169.254"}},
		"100.64.0.0/10":  {[]string{"100.64.0.1"}, []string{"10.0.0.1"}},
		"169.254.0.0/16": {[]string{"169.254.169.254"}, []string{"fe80::1"}},
	} {
		t.Run(network, func(t *testing.T) {
			out := open(t, egress.Options{Policy: egress.Policy{AllowCIDRs: prefixes(network)}})
			for _, address := range want.opened {
				if err := out.Judge("", inURL(address)); err != nil {
					t.Errorf("%s: %v", address, err)
				}
			}
			for _, address := range want.closed {
				if err := out.Judge("", inURL(address)); err == nil {
					t.Errorf("%s is open", address)
				}
			}
		})
	}
}

func TestWhatAGatewayWouldPassOnIsNamed(t *testing.T) {
	out := open(t, egress.Options{Policy: egress.Policy{AllowCIDRs: prefixes("64:ff9b::/96", "2002::/16")}})
	expectDenied(t, out.Judge("", "https://[64:ff9b::a9fe:a9fe]/"),
		"64:ff9b::a9fe:a9fe is a NAT64 address that stands for 169.254.169.254, a cloud metadata address, which egress.allow_cidrs does not open")
	expectDenied(t, out.Judge("", "https://[2002:a00:1::]/"), "is a 6to4 address that stands for 10.0.0.1, a private address")
}
