package tokenstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/psych-systems/psych-go/secret"
)

// sealed is a store whose values are encrypted and bound to their keys.
type sealed struct {
	store Store
	// keys open values, and keys[0] seals them. It is never empty.
	keys []sealKey
}

// Seal returns a store that keeps its records encrypted in another one, which it
// then owns. Values are sealed with XChaCha20-Poly1305 under a key derived from
// the secret, each bound to its record's key, so that one moved to another tenant
// or name does not open. The URL of an owner reaches the store beneath only as
// its SHA-256 digest, because a query may hold what is nobody's business; the
// whole URL is part of the sealed value. Tenants, principals, names, versions and
// the lengths of values stay visible. That a whole record is put back as it was
// is not seen.
//
// Former secrets open what was sealed with them; whatever is written is sealed
// with key. A former one is needed until each of its records was written again or
// deleted.
//
// A value that does not open fails with [*Unreadable], and stays as it is. Its
// record is still listed and can be deleted; with an URL that only the value
// would tell, its key holds the digest in the URL's place. Every method takes
// such a key for the one with the URL itself.
//
// It fails with failure.SpecInvalid when one of the secrets has less than 16
// bytes.
func Seal(store Store, key secret.Text, former ...secret.Text) (Store, error) {
	keys := make([]sealKey, 0, 1+len(former))
	for i, one := range append([]secret.Text{key}, former...) {
		derived, err := deriveSealKey(one)
		if err != nil {
			if i > 0 {
				return nil, fmt.Errorf("former token key %d: %w", i, err)
			}
			return nil, err
		}
		keys = append(keys, derived)
	}
	return &sealed{store: store, keys: keys}, nil
}

func (s *sealed) Load(ctx context.Context, key Key) (Record, error) {
	record, err := s.store.Load(ctx, beneath(key))
	if err != nil {
		return Record{}, above(key, err)
	}
	if record.Version == 0 {
		return Record{}, nil
	}
	_, value, err := s.open(key, record.Value)
	if err != nil {
		return Record{}, err
	}
	return Record{Value: value, Version: record.Version}, nil
}

func (s *sealed) Swap(ctx context.Context, key Key, have uint64, value []byte) (uint64, error) {
	at := beneath(key)
	version, err := s.store.Swap(ctx, at, have, s.keys[0].seal(at, key.URL, value))
	return version, above(key, err)
}

func (s *sealed) Delete(ctx context.Context, key Key, have uint64) error {
	return above(key, s.store.Delete(ctx, beneath(key), have))
}

// List implements [Store]. It opens a value for each URL that the caller does not
// give.
func (s *sealed) List(ctx context.Context, of Owner) ([]Key, error) {
	keys, err := s.store.List(ctx, Owner{Tenant: of.Tenant, Principal: of.Principal, URL: digest(of.URL)})
	if err != nil {
		return nil, err
	}
	urls := map[string]string{"": "", digest(of.URL): of.URL}
	for i, key := range keys {
		url, known := urls[key.URL]
		if !known {
			if url, err = s.url(ctx, key); err != nil {
				return nil, err
			}
			if url != key.URL {
				urls[key.URL] = url
			}
		}
		keys[i].URL = url
	}
	return keys, nil
}

// url reads the URL behind the digest in a key out of the record's value. It is
// the digest again where the value does not tell.
func (s *sealed) url(ctx context.Context, key Key) (string, error) {
	record, err := s.store.Load(ctx, key)
	if err != nil {
		return "", err
	}
	if record.Version == 0 {
		return key.URL, nil // it was deleted since it was listed
	}
	url, _, err := s.open(key, record.Value)
	var unreadable *Unreadable
	if errors.As(err, &unreadable) {
		return key.URL, nil
	}
	return url, err
}

func (s *sealed) Close() error { return s.store.Close() }

// open opens a stored value with whichever key fits.
func (s *sealed) open(key Key, stored []byte) (url string, value []byte, err error) {
	at := beneath(key)
	for _, one := range s.keys {
		if url, value, ok := one.open(at, stored); ok {
			return url, value, nil
		}
	}
	return "", nil, &Unreadable{Key: key}
}

// beneath is a key as the store beneath knows it.
func beneath(key Key) Key {
	key.URL = digest(key.URL)
	return key
}

// above puts the caller's key in the place of the one beneath.
func above(key Key, err error) error {
	var conflict *Conflict
	if errors.As(err, &conflict) {
		return &Conflict{Key: key, Have: conflict.Have, Actual: conflict.Actual}
	}
	return err
}

// Unreadable is a stored value that does not open: the key is another one than it
// was sealed with, or the value is damaged or was moved. It is still there. With
// the right key among the former ones it opens again; without, what it held has
// to be obtained anew and the record deleted.
type Unreadable struct{ Key Key }

func (u *Unreadable) Error() string {
	return fmt.Sprintf("the stored record %.80q of tenant %.80q cannot be opened: it was sealed with another token key, or it is damaged; it was left as it is", u.Key.Name, u.Key.Tenant)
}
