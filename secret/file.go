package secret

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

const (
	// anyPrincipal stands for every principal of a tenant that has no entry of its
	// own for the name.
	anyPrincipal = "*"
	// fileLimit bounds a secrets file, in bytes.
	fileLimit = 1 << 20
)

// File resolves credentials from a YAML file that maps tenant, principal ("*"
// for any) and name to the value. The file is read at each use.
//
//	acme:
//	  "*":
//	    github-token: ghp_…
//
// The tenant "*" is no tenant: what stands under its principal "*" belongs to
// the process, and only [File.Process] finds it.
type File struct {
	path       string
	identities Identities
	// last is what was read last: bytes that did not change are not parsed again.
	last atomic.Pointer[reading]
}

// reading is what one content of the file means.
type reading struct {
	digest [sha256.Size]byte
	ledger ledger
	err    error
}

var _ Resolver = (*File)(nil)

// NewFile returns the resolver of a file, which need not exist yet.
func NewFile(path string, identities Identities) *File {
	return &File{path: path, identities: identities}
}

// Check reads the whole file and reports what is wrong with it, by line and
// never by content.
func (f *File) Check() error {
	_, err := f.read()
	return err
}

// Resolve implements [Resolver]. A principal's own entry precedes that for any.
func (f *File) Resolve(_ context.Context, scope messages.Scope, name string) (Credential, error) {
	if scope.Tenant == anyPrincipal {
		return Credential{}, notFound(scope, name)
	}
	tenants, err := f.read()
	if err != nil {
		return Credential{}, err
	}
	for _, principal := range []string{scope.Principal, anyPrincipal} {
		if value, found := tenants[scope.Tenant][principal][name]; found {
			return f.identities.Of(value), nil
		}
	}
	return Credential{}, notFound(scope, name)
}

// Process returns a secret of the process, which lies outside all tenants.
func (f *File) Process(name string) (Text, error) {
	tenants, err := f.read()
	if err != nil {
		return Text{}, err
	}
	if value, found := tenants[anyPrincipal][anyPrincipal][name]; found {
		return NewText(value), nil
	}
	return Text{}, notKept(name)
}

func (f *File) read() (ledger, error) {
	data, err := f.load()
	if err != nil {
		return nil, failure.New(failure.KindSpecInvalid, fmt.Sprintf("%s: the secrets file %s", f.path, err), err)
	}
	digest := sha256.Sum256(data)
	last := f.last.Load()
	if last == nil || last.digest != digest {
		last = &reading{digest: digest}
		last.ledger, last.err = parseLedger(f.path, data)
		f.last.Store(last)
	}
	return last.ledger, last.err
}

// load reads the bytes up to the limit. Its errors say why not.
func (f *File) load() ([]byte, error) {
	opened, err := os.Open(f.path)
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err // the sentence names the file already
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer func() { _ = opened.Close() }()
	data, err := io.ReadAll(io.LimitReader(opened, fileLimit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case len(data) > fileLimit:
		return nil, fmt.Errorf("has more than %d bytes", fileLimit)
	}
	return data, nil
}

func notFound(scope messages.Scope, name string) error {
	return failure.New(failure.KindCredentialNotFound,
		fmt.Sprintf("no credential named %q is known for %s", name, scope), nil)
}

func notKept(name string) error {
	return failure.New(failure.KindCredentialNotFound,
		fmt.Sprintf("no credential named %q is kept for the process", name), nil)
}
