package egress

import (
	"maps"
	"slices"
	"strings"
)

// hostRules is which hosts a policy opens.
type hostRules struct {
	// only is the hosts that are open; nil opens all, an empty set none.
	only hostSet
	// denied is closed whatever else is said.
	denied hostSet
}

// narrow returns the rules that open what both open.
func (r hostRules) narrow(with hostRules) hostRules {
	narrowed := hostRules{only: r.only, denied: r.denied.union(with.denied)}
	switch {
	case r.only == nil:
		narrowed.only = with.only
	case with.only != nil:
		narrowed.only = r.only.intersect(with.only)
	}
	return narrowed
}

// key is the same for rules that open the same hosts, and differs for others. It
// needs no escapes: a host holds neither space nor exclamation mark.
func (r hostRules) key() string {
	only := "*"
	if r.only != nil {
		only = r.only.String()
	}
	return only + "!" + r.denied.String()
}

// hostSet is hosts and, by names that begin with a dot, all the hosts beneath a
// domain. None in it lies beneath another one in it.
type hostSet map[host]struct{}

// setOf returns the set that holds what the patterns match. Where one lies
// beneath another it is left out, so that equal sets have equal elements.
func setOf(patterns []host) hostSet {
	set := make(hostSet, len(patterns))
	for _, pattern := range patterns {
		set[pattern] = struct{}{}
	}
	maps.DeleteFunc(set, func(pattern host, _ struct{}) bool { return set.beneath(pattern) })
	return set
}

// matches reports whether a host, or all that a wildcard stands for, is in the set.
func (s hostSet) matches(h host) bool {
	_, exact := s[h]
	return exact || s.beneath(h)
}

// beneath reports whether it lies beneath a wildcard of the set.
func (s hostSet) beneath(h host) bool {
	for i := 1; i < len(h.name); i++ {
		if h.name[i] != '.' {
			continue
		}
		if _, found := s[host{name: h.name[i:]}]; found {
			return true
		}
	}
	return false
}

func (s hostSet) union(other hostSet) hostSet {
	return setOf(slices.AppendSeq(slices.Collect(maps.Keys(s)), maps.Keys(other)))
}

func (s hostSet) intersect(other hostSet) hostSet {
	var both []host
	for h := range s {
		if other.matches(h) {
			both = append(both, h)
		}
	}
	for h := range other {
		if s.matches(h) {
			both = append(both, h)
		}
	}
	return setOf(both)
}

// String lists the set in order.
func (s hostSet) String() string {
	names := make([]string, 0, len(s))
	for h := range s {
		names = append(names, h.String())
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// ValidHost reports whether a host rule can hold a text; see [Policy].
func ValidHost(text string) bool {
	_, err := patternOf(text)
	return err == nil
}

// patternOf reads a pattern of a host rule: a host name, an IP address with or
// without brackets, or "*." and a domain.
func patternOf(text string) (host, error) {
	domain, wildcard := strings.CutPrefix(text, "*.")
	if strings.HasPrefix(domain, "[") && strings.HasSuffix(domain, "]") {
		domain = domain[1 : len(domain)-1]
	}
	pattern, err := hostOf(domain)
	switch {
	case err != nil:
		return host{}, err
	case pattern.name == "" && wildcard, pattern.name != "" && !isDomain(pattern.name):
		return host{}, errNotAHost
	case wildcard:
		pattern.name = "." + pattern.name
	}
	return pattern, nil
}

// isDomain reports whether a name can be one of the domain name system (RFC 1123
// section 2.1), which an underscore may be part of in practice.
func isDomain(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInLabel) {
			return false
		}
	}
	return len(name) <= 253
}

func notInLabel(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '_':
		return false
	}
	return true
}
