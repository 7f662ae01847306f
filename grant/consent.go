package grant

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/tokenstore"
)

// rememberFor is how long a consent that another process may have renewed is taken
// for the latest. One that is renewed here is known at once.
const rememberFor = 2 * time.Second

// maxRemembered bounds what is remembered; beyond it all is forgotten.
const maxRemembered = 10_000

// Consents knows on which consent each grant stands. Its id is part of the pool
// key: what one person's login opened is never used after another's. It is safe
// for concurrent use.
type Consents struct {
	store tokenstore.Store

	mu    sync.Mutex
	known map[tokenstore.Key]remembered
}

type remembered struct {
	id   string
	from time.Time
}

// NewConsents returns the consents of a store.
func NewConsents(store tokenstore.Store) *Consents {
	return &Consents{store: store, known: map[tokenstore.Key]remembered{}}
}

// Latest is the id of the latest consent for a grant; "" before the first.
func (c *Consents) Latest(ctx context.Context, scope messages.Scope, url string, transport messages.Transport, config *messages.Grant) (string, error) {
	key := consentKey(scope, url, transport, config)
	c.mu.Lock()
	found, known := c.known[key]
	c.mu.Unlock()
	if known && time.Since(found.from) < rememberFor {
		return found.id, nil
	}
	stored, err := c.store.Load(ctx, key)
	if err != nil {
		return "", err
	}
	id := string(stored.Value)
	c.remember(key, id)
	return id, nil
}

func (c *Consents) remember(key tokenstore.Key, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxRemembered {
		clear(c.known)
	}
	c.known[key] = remembered{id, time.Now()}
}

// forget has the next look go to the store.
func (c *Consents) forget(key tokenstore.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, key)
}

// renew makes an id the latest, whatever was before.
func (c *Consents) renew(ctx context.Context, key tokenstore.Key, id string) error {
	for {
		stored, err := c.store.Load(ctx, key)
		if err != nil {
			return err
		}
		_, err = c.store.Swap(ctx, key, stored.Version, []byte(id))
		if conflict, lost := errors.AsType[*tokenstore.Conflict](err); lost && conflict != nil {
			continue
		}
		if err == nil {
			c.remember(key, id)
		}
		return err
	}
}

func newConsent() string { return rand.Text() }

func consentKey(scope messages.Scope, url string, transport messages.Transport, config *messages.Grant) tokenstore.Key {
	return tokenstore.Key{
		Owner: tokenstore.Owner{Tenant: scope.Tenant, Principal: scope.Principal, URL: url},
		Name:  consentPrefix + digest(string(transport), config.ConfigurationDigest()),
	}
}
