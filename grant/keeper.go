package grant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/oauth"
	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/tokenstore"
)

// Options is what a keeper is made from. Redirect and Logger may be nil.
type Options struct {
	Key    messages.PoolKey
	Config *messages.Grant
	// Server is how sentences call the server.
	Server string
	// HTTP is the tenant's way out.
	HTTP          *http.Client
	Secrets       secret.Resolver
	Store         tokenstore.Store
	Registrations *Registrations
	Consents      *Consents
	// Redirect asks persons; nil asks nobody.
	Redirect AuthorizationRedirect
	// Override is what the operator has decided for the server.
	Override oauth.Override
	Logger   *zap.Logger
}

// Keeper keeps the grant of one pool key, in one process. It is safe for concurrent
// use.
type Keeper struct {
	Options
	steps *oauth.Client
	// present is the grant whose token is handed out; nil when there is none.
	present atomic.Pointer[record]
	// restored is closed once it is known whether a grant was stored.
	restored chan struct{}
	once     sync.Once
	// used and accepted are the versions of the last token that was handed out, and of
	// the last that a server took.
	used, accepted atomic.Uint64
}

// Token is what may be known of a token without its value.
type Token struct {
	Version           uint64
	Issuer            string
	Scopes            []string
	Obtained, Expires time.Time
	Renewable         bool
}

// Refusal is how a server refused a request for want of a token.
type Refusal struct {
	Status    int
	Challenge []string
}

// NewKeeper returns the keeper of a key's grant. It does nothing until it is asked
// to.
func NewKeeper(options Options) *Keeper {
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	return &Keeper{
		Options: options, restored: make(chan struct{}),
		steps: &oauth.Client{
			HTTP: options.HTTP, Resource: options.Key.URL(), Override: options.Override, Logger: options.Logger,
		},
	}
}

// interactive says that the grant begins with a person's consent.
func (k *Keeper) interactive() bool { return k.Config.GetType() == authorizationCode }

// The grants, as messages name them.
const (
	authorizationCode = "authorization_code"
	clientCredentials = "client_credentials"
)

// Value returns the present token for one request and its version; nothing when
// there is none. It waits, within ctx, until it is known what was stored. It fails
// with [messages.TokenSpentError] where the token has run out.
func (k *Keeper) Value(ctx context.Context) (secret.Text, uint64, error) {
	select {
	case <-k.restored:
	default:
		select {
		case <-k.restored:
		case <-ctx.Done():
			return secret.Text{}, 0, ctx.Err()
		}
	}
	present := k.present.Load()
	switch {
	case present == nil:
		return secret.Text{}, 0, nil
	case present.spent(time.Now()):
		return secret.Text{}, 0, &messages.TokenSpentError{Version: present.version}
	}
	k.used.Store(present.version)
	return present.access, present.version, nil
}

// Accept takes note that a server took a token.
func (k *Keeper) Accept(version uint64) {
	if k.accepted.Load() != version {
		k.accepted.Store(version)
	}
}

// Used reports whether a token was handed out.
func (k *Keeper) Used(version uint64) bool { return k.used.Load() == version }

// Accepted reports whether a server took a token.
func (k *Keeper) Accepted(version uint64) bool { return k.accepted.Load() == version }

// Restore takes up the grant that was stored, if one was.
func (k *Keeper) Restore(ctx context.Context) (Token, error) {
	defer k.once.Do(func() { close(k.restored) })
	keys, err := k.Store.List(ctx, ownerOf(k.Key))
	if err != nil {
		return Token{}, k.unstored(err)
	}
	var latest *record
	for _, key := range keys {
		if key.Owner != ownerOf(k.Key) || !strings.HasPrefix(key.Name, prefixOf(k.Key)) {
			continue
		}
		found, err := k.load(ctx, key)
		if err != nil {
			return Token{}, k.unstored(err)
		}
		if found != nil && (latest == nil || found.obtained.After(latest.obtained)) {
			latest = found
		}
	}
	if latest == nil {
		return Token{}, nil
	}
	return k.hold(latest), nil
}

func (k *Keeper) load(ctx context.Context, key tokenstore.Key) (*record, error) {
	stored, err := k.Store.Load(ctx, key)
	if err != nil || stored.Version == 0 {
		return nil, err
	}
	return decode(stored)
}

// unstored is a store that fails, which may pass.
func (k *Keeper) unstored(err error) error {
	return failure.New(failure.KindMcpServerUnreachable,
		fmt.Sprintf("the grant for the server %q cannot be read or written in the token store", k.Server), err)
}

// hold makes a stored grant the present one.
func (k *Keeper) hold(r *record) Token {
	k.present.Store(r)
	return Token{
		Version: r.version, Issuer: r.server.Issuer, Scopes: r.scopes, Obtained: r.obtained, Expires: r.expires,
		Renewable: !k.interactive() || !r.refresh.IsZero(),
	}
}

// drop lets go of the present grant.
func (k *Keeper) drop() { k.present.Store(nil) }

// save stores a grant over the one that it follows, nil for none, and makes it the
// present one. Where another owner has written meanwhile, its grant is the one, and
// ours is given back.
func (k *Keeper) save(ctx context.Context, next, before *record) (Token, error) {
	value, err := next.encode()
	if err != nil {
		return Token{}, k.unstored(err)
	}
	key, have := keyOf(k.Key, next.server.Issuer), uint64(0)
	if before != nil && before.server.Issuer == next.server.Issuer {
		have = before.version
	}
	version, err := k.persist(ctx, key, have, value)
	if _, lost := errors.AsType[*tokenstore.Conflict](err); lost {
		return k.yield(ctx, key, next)
	}
	if err != nil {
		return Token{}, k.unstored(err)
	}
	next.version = version
	token := k.hold(next)
	if before != nil && have == 0 {
		// The grant of the authorization server before is of no use any more.
		if err := k.Store.Delete(ctx, keyOf(k.Key, before.server.Issuer), before.version); err != nil {
			k.Logger.Info("a former grant was not deleted", zap.String("server", k.Server), zap.Error(err))
		}
	}
	return token, nil
}

// storePause is between two attempts to store what cannot be had a second time.
const storePause = 100 * time.Millisecond

// persist stores a value, again and again until ctx ends: a refresh token that was
// rotated and is not stored is lost.
func (k *Keeper) persist(ctx context.Context, key tokenstore.Key, have uint64, value []byte) (uint64, error) {
	for {
		version, err := k.Store.Swap(ctx, key, have, value)
		if _, lost := errors.AsType[*tokenstore.Conflict](err); err == nil || lost {
			return version, err
		}
		k.Logger.Error("a token could not be stored", zap.String("server", k.Server), zap.Error(err))
		select {
		case <-time.After(storePause):
		case <-ctx.Done():
			return 0, err
		}
	}
}

// yield takes over what another owner has stored, and gives back what was obtained
// for nothing.
func (k *Keeper) yield(ctx context.Context, key tokenstore.Key, ours *record) (Token, error) {
	theirs, err := k.load(ctx, key)
	if err != nil {
		return Token{}, k.unstored(err)
	}
	if theirs != nil {
		return k.hold(theirs), nil
	}
	k.drop()
	k.revoke(ctx, ours)
	return Token{}, k.forgotten(ctx)
}

// forgotten is a grant that is not stored any more: it was disconnected, or another
// consent has taken its place.
func (k *Keeper) forgotten(ctx context.Context) error {
	if k.interactive() {
		if moved, err := k.moved(ctx); moved || err != nil {
			return err
		}
	}
	return failure.New(failure.KindAuthorizationRequired,
		fmt.Sprintf("the grant for the server %q was given up", k.Server), nil)
}

// moved says with [messages.ErrStaleKey] that the grant stands on another consent
// than the key's.
func (k *Keeper) moved(ctx context.Context) (bool, error) {
	key := consentKey(k.Key.Scope(), k.Key.URL(), k.Key.Transport(), k.Config)
	stored, err := k.Store.Load(ctx, key)
	if err != nil {
		return false, k.unstored(err)
	}
	if string(stored.Value) == k.Config.GetConsent() {
		return false, nil
	}
	k.Consents.forget(key)
	k.drop()
	return true, messages.ErrStaleKey
}
