package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/psych-systems/psych-go/tokenstore"
)

// Store is a [tokenstore.Store] in a file.
type Store struct{ database *database }

var _ tokenstore.Store = (*Store)(nil)

// Open opens the store in a file, which is made when there is none; its directory
// must be there. The file and those that SQLite keeps beside it (PATH-wal and
// PATH-shm) are readable to the process's user alone. A path that is a directory
// or a symbolic link, or whose content is not a token store of a known layout,
// fails with failure.SpecInvalid.
func Open(ctx context.Context, path string) (*Store, error) {
	if err := prepare(path); err != nil {
		return nil, err
	}
	opened, err := connect(path)
	if err != nil {
		return nil, unusable(path, "it cannot be opened", err)
	}
	if err := opened.write(ctx, migrate); err != nil {
		_ = opened.close()
		switch {
		case ctx.Err() != nil:
			return nil, err
		case errors.Is(err, errNewer):
			return nil, unusable(path, "a newer version of this program wrote it", err)
		case isNoDatabase(err):
			return nil, unusable(path, "it holds something else", err)
		default:
			return nil, unusable(path, "it cannot be read and written", err)
		}
	}
	return &Store{database: opened}, nil
}

// Load implements [tokenstore.Store].
func (s *Store) Load(ctx context.Context, key tokenstore.Key) (tokenstore.Record, error) {
	if err := key.Check(); err != nil {
		return tokenstore.Record{}, err
	}
	var record tokenstore.Record
	err := s.database.read(ctx, func(ctx context.Context, db *sql.DB) error {
		var version int64
		err := db.QueryRowContext(ctx, `SELECT version, value FROM token_record WHERE `+isKey, parts(key)...).Scan(&version, &record.Value)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		record.Version = uint64(version) //nolint:gosec // versions count up from 0
		return err
	})
	if err != nil {
		return tokenstore.Record{}, err
	}
	return record, nil
}

// isKey chooses one record; its arguments are parts.
const isKey = `tenant = ? AND principal = ? AND url = ? AND name = ?`

func parts(key tokenstore.Key) []any {
	return []any{[]byte(key.Tenant), []byte(key.Principal), []byte(key.URL), []byte(key.Name)}
}

// Swap implements [tokenstore.Store]. It returns once the disk has the value.
func (s *Store) Swap(ctx context.Context, key tokenstore.Key, have uint64, value []byte) (uint64, error) {
	if err := key.Check(); err != nil {
		return 0, err
	}
	var version int64
	err := s.database.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if actual, err := present(ctx, tx, key); err != nil {
			return err
		} else if actual != have {
			return &tokenstore.Conflict{Key: key, Have: have, Actual: actual}
		}
		if err := tx.QueryRowContext(ctx, `UPDATE token_sequence SET last = last + 1 RETURNING last`).Scan(&version); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO token_record (tenant, principal, url, name, version, value) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET version = excluded.version, value = excluded.value`,
			append(parts(key), version, append([]byte{}, value...))...)
		return err
	})
	if err != nil {
		return 0, err
	}
	return uint64(version), nil //nolint:gosec // versions count up from 0
}

// present is the version of a record; 0 when there is none.
func present(ctx context.Context, tx *sql.Tx, key tokenstore.Key) (uint64, error) {
	var version int64
	err := tx.QueryRowContext(ctx, `SELECT version FROM token_record WHERE `+isKey, parts(key)...).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return uint64(version), err //nolint:gosec // versions count up from 0
}

// Delete implements [tokenstore.Store]. It returns once the disk has forgotten
// the record.
func (s *Store) Delete(ctx context.Context, key tokenstore.Key, have uint64) error {
	if err := key.Check(); err != nil {
		return err
	}
	return s.database.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if actual, err := present(ctx, tx, key); err != nil {
			return err
		} else if have != 0 && actual != 0 && actual != have {
			return &tokenstore.Conflict{Key: key, Have: have, Actual: actual}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM token_record WHERE `+isKey, parts(key)...)
		return err
	})
}

// List implements [tokenstore.Store].
func (s *Store) List(ctx context.Context, of tokenstore.Owner) ([]tokenstore.Key, error) {
	if of.Tenant == "" {
		return nil, tokenstore.ErrKey
	}
	query, arguments := `SELECT principal, url, name FROM token_record WHERE tenant = ?`, []any{[]byte(of.Tenant)}
	if of.Principal != "" {
		query, arguments = query+` AND principal = ?`, append(arguments, []byte(of.Principal))
	}
	if of.URL != "" {
		query, arguments = query+` AND url = ?`, append(arguments, []byte(of.URL))
	}
	var keys []tokenstore.Key
	err := s.database.read(ctx, func(ctx context.Context, db *sql.DB) error {
		keys = nil
		rows, err := db.QueryContext(ctx, query, arguments...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var principal, url, name []byte
			if err := rows.Scan(&principal, &url, &name); err != nil {
				return err
			}
			keys = append(keys, tokenstore.Key{Owner: tokenstore.Owner{Tenant: of.Tenant, Principal: string(principal), URL: string(url)}, Name: string(name)})
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// Close implements [tokenstore.Store]. Calls that run are waited for, or fail.
func (s *Store) Close() error { return s.database.close() }
