package config

import (
	"errors"
	"net/url"
	"strings"
)

// StoreKind is what a store is made of.
type StoreKind string

// The kinds of stores.
const (
	Memory   StoreKind = "memory"
	SQLite   StoreKind = "sqlite"
	Postgres StoreKind = "postgres"
)

// Store is where something is kept. It prints without the password that a
// PostgreSQL URL may hold.
type Store struct {
	Kind StoreKind
	// Path is the file of a SQLite database.
	Path string
	// URL is a PostgreSQL database. It may hold a password: never log it.
	URL string
}

var errStore = errors.New(`it must be "memory:", sqlite:PATH or postgres://HOST/DATABASE`)

// UnmarshalText reads memory:, sqlite:PATH or a postgres:// URL. In YAML the
// colon of memory: needs quotes, so memory alone will do.
func (s *Store) UnmarshalText(written []byte) error {
	kind, rest, _ := strings.Cut(string(written), ":")
	switch {
	case kind == "memory" && rest == "":
		*s = Store{Kind: Memory}
	case kind == "sqlite" && rest == ":memory:":
		return errors.New("a database in memory keeps nothing; write memory if that is meant")
	case kind == "sqlite" && strings.TrimSpace(rest) != "" && !strings.HasPrefix(rest, "//"):
		*s = Store{Kind: SQLite, Path: rest}
	case kind == "postgres" && isPostgres(string(written)):
		*s = Store{Kind: Postgres, URL: string(written)}
	default:
		return errStore
	}
	return nil
}

func isPostgres(written string) bool {
	parsed, err := url.Parse(written)
	return err == nil && parsed.Scheme == "postgres" && strings.HasPrefix(written, "postgres://") && parsed.Host+strings.Trim(parsed.Path, "/") != "" && parsed.Fragment == ""
}

// String is the store as it is written, without a password.
func (s Store) String() string {
	switch s.Kind {
	case SQLite:
		return "sqlite:" + s.Path
	case Postgres:
		parsed, err := url.Parse(s.URL)
		if err != nil {
			return "postgres:"
		}
		parsed.RawQuery = ""
		return parsed.Redacted()
	default:
		return "memory:"
	}
}

// GoString is String, so that no format prints the password.
func (s Store) GoString() string { return s.String() }

// MarshalText is String, so that no encoder writes the password.
func (s Store) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
