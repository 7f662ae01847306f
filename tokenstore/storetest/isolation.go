package storetest

import (
	"context"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/tokenstore"
)

// pieces make parts of keys that are easily taken for one another.
var pieces = []string{"a", "A", "b", "/", ":", "|", ".", "%", "%2F", "*", "_", "'", " ", "\x00", "\x01", "é", "e\u0301", "名", "\xff", "https://a.example/", "?", "grant/"}

func part(least int) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), least, 3), func(drawn []string) string { return strings.Join(drawn, "") })
}

func key(t *rapid.T) tokenstore.Key {
	return tokenstore.Key{
		Owner: tokenstore.Owner{Tenant: part(1).Draw(t, "tenant"), Principal: part(0).Draw(t, "principal"), URL: part(0).Draw(t, "url")},
		Name:  part(1).Draw(t, "name"),
	}
}

// near draws a key that shares parts with another, or has the text of a part
// moved across its border.
func near(t *rapid.T, key tokenstore.Key) tokenstore.Key {
	parts := []*string{&key.Tenant, &key.Principal, &key.URL, &key.Name}
	at := rapid.IntRange(0, 3).Draw(t, "part")
	switch other := parts[(at+1)%4]; rapid.IntRange(0, 2).Draw(t, "change") {
	case 0:
		*parts[at] = part(0).Draw(t, "another")
	case 1:
		*parts[at], *other = *other, *parts[at]
	default:
		if text := *parts[at]; len(text) > 0 {
			*parts[at], *other = text[:len(text)-1], text[len(text)-1:]+*other
		}
	}
	return key
}

// isolation compares a store with a map, over keys that look alike.
func isolation(t *testing.T, store tokenstore.Store) {
	ctx := within(t)
	rapid.Check(t, func(t *rapid.T) {
		kept := map[tokenstore.Key]string{}
		defer func() {
			for key := range kept {
				if err := store.Delete(ctx, key, 0); err != nil {
					t.Errorf("%q cannot be deleted: %v", key, err)
				}
			}
		}()
		first := key(t)
		drawn := []tokenstore.Key{first}
		for range rapid.IntRange(1, 4).Draw(t, "keys") {
			if next := near(t, drawn[len(drawn)-1]); next.Check() == nil {
				drawn = append(drawn, next)
			}
		}
		// Every second key stays without a record, and must not show another's.
		for i, key := range drawn {
			if _, taken := kept[key]; taken || i%2 == 1 {
				continue
			}
			kept[key] = "value " + string(rune('A'+i))
			if _, err := store.Swap(ctx, key, 0, []byte(kept[key])); err != nil {
				t.Fatalf("%q cannot be written: %v", key, err)
			}
		}
		for _, key := range drawn {
			got, err := store.Load(ctx, key)
			if err != nil || string(got.Value) != kept[key] || (got.Version == 0) != (kept[key] == "") {
				t.Fatalf("%q holds %q at %d (%v), want %q", key, got.Value, got.Version, err, kept[key])
			}
			for _, of := range []tokenstore.Owner{
				key.Owner, {Tenant: key.Tenant}, {Tenant: key.Tenant, Principal: key.Principal}, {Tenant: key.Tenant, URL: key.URL},
			} {
				lists(ctx, t, store, of, kept)
			}
		}
	})
}

// lists checks that an owner's list is what the map has of that owner.
func lists(ctx context.Context, t *rapid.T, store tokenstore.Store, of tokenstore.Owner, kept map[tokenstore.Key]string) {
	want := map[tokenstore.Key]bool{}
	for key := range kept {
		if key.Tenant == of.Tenant && (of.Principal == "" || key.Principal == of.Principal) && (of.URL == "" || key.URL == of.URL) {
			want[key] = true
		}
	}
	keys, err := store.List(ctx, of)
	if err != nil {
		t.Fatalf("%q cannot be listed: %v", of, err)
	}
	got := map[tokenstore.Key]bool{}
	for _, key := range keys {
		got[key] = true
	}
	if len(keys) != len(got) || !maps.Equal(got, want) {
		t.Fatalf("the list of %q is %q, want %v", of, keys, want)
	}
}
