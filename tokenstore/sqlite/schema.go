package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// schemaVersion is the layout that this package reads and writes. A file of a
// later one is refused.
const schemaVersion = 1

// schema is layout 1. The parts of keys are blobs, so that they are compared byte
// by byte whatever they hold. The one row of token_sequence is the newest version
// of the store, which outlives the records.
const schema = `
CREATE TABLE token_schema (version INTEGER NOT NULL) STRICT;
CREATE TABLE token_sequence (last INTEGER NOT NULL) STRICT;
CREATE TABLE token_record (
	tenant BLOB NOT NULL,
	principal BLOB NOT NULL,
	url BLOB NOT NULL,
	name BLOB NOT NULL,
	version INTEGER NOT NULL,
	value BLOB NOT NULL,
	PRIMARY KEY (tenant, principal, url, name)
) STRICT, WITHOUT ROWID;
INSERT INTO token_schema VALUES (1);
INSERT INTO token_sequence VALUES (0);
`

var errNewer = errors.New("a newer version of this program wrote it")

// migrate makes the tables in a new file and finds that those of an old one are
// known.
func migrate(ctx context.Context, tx *sql.Tx) error {
	var tables int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'token_schema'`).Scan(&tables); err != nil {
		return err
	}
	if tables == 0 {
		_, err := tx.ExecContext(ctx, schema)
		return err
	}
	var version int
	if err := tx.QueryRowContext(ctx, `SELECT version FROM token_schema`).Scan(&version); err != nil {
		return err
	}
	if version > schemaVersion {
		return fmt.Errorf("schema %d: %w", version, errNewer)
	}
	return nil
}
