package memory

import (
	"context"
	"slices"
	"sync"

	"github.com/psych-systems/psych-go/tokenstore"
)

// Store is a [tokenstore.Store] in memory.
type Store struct {
	mu sync.Mutex
	// records is nil once the store is closed.
	records map[tokenstore.Key]tokenstore.Record
	// last is the newest version; no record has a greater one.
	last uint64
}

var _ tokenstore.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{records: map[tokenstore.Key]tokenstore.Record{}} }

// Load implements [tokenstore.Store].
func (s *Store) Load(ctx context.Context, key tokenstore.Key) (tokenstore.Record, error) {
	if err := key.Check(); err != nil {
		return tokenstore.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return tokenstore.Record{}, err
	}
	record := s.records[key]
	record.Value = slices.Clone(record.Value)
	return record, nil
}

// Swap implements [tokenstore.Store].
func (s *Store) Swap(ctx context.Context, key tokenstore.Key, have uint64, value []byte) (uint64, error) {
	if err := key.Check(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if actual := s.records[key].Version; actual != have {
		return 0, &tokenstore.Conflict{Key: key, Have: have, Actual: actual}
	}
	s.last++
	s.records[key] = tokenstore.Record{Value: slices.Clone(value), Version: s.last}
	return s.last, nil
}

// Delete implements [tokenstore.Store].
func (s *Store) Delete(ctx context.Context, key tokenstore.Key, have uint64) error {
	if err := key.Check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	actual := s.records[key].Version
	if have != 0 && actual != 0 && actual != have {
		return &tokenstore.Conflict{Key: key, Have: have, Actual: actual}
	}
	delete(s.records, key)
	return nil
}

// List implements [tokenstore.Store].
func (s *Store) List(ctx context.Context, of tokenstore.Owner) ([]tokenstore.Key, error) {
	if of.Tenant == "" {
		return nil, tokenstore.ErrKey
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var keys []tokenstore.Key
	for key := range s.records {
		if key.Tenant == of.Tenant && (of.Principal == "" || key.Principal == of.Principal) && (of.URL == "" || key.URL == of.URL) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Close implements [tokenstore.Store]. It forgets every record.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = nil
	return nil
}

// usable says why the store cannot be used; s.mu is held.
func (s *Store) usable(ctx context.Context) error {
	if s.records == nil {
		return tokenstore.ErrClosed
	}
	return ctx.Err()
}
