package secret

import (
	"context"
	"fmt"
	"os"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

const (
	// anyPrincipal stands for every principal of a tenant that has no entry of its
	// own for the name.
	anyPrincipal = "*"
	// fileLimit bounds a secrets file, in bytes.
	fileLimit = 4 << 20
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
	return Text{}, failure.New(failure.KindCredentialNotFound,
		fmt.Sprintf("no credential named %q is kept for the process", name), nil)
}

// read returns tenant -> principal -> name -> value.
func (f *File) read() (map[string]map[string]map[string]string, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, f.unusable("cannot be read", err)
	}
	if info.Size() > fileLimit {
		return nil, f.unusable("is too large for a secrets file", nil)
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil, f.unusable("cannot be read", err)
	}
	// The parser's own errors quote the file, so they are not passed on.
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, f.unusable("is not YAML", nil)
	}
	tenants := map[string]map[string]map[string]string{}
	for _, document := range parsed.Docs {
		if document.Body == nil {
			continue
		}
		err := f.each(document.Body, "the file", func(tenant string, node ast.Node) error {
			tenants[tenant] = map[string]map[string]string{}
			return f.each(node, "a tenant", func(principal string, node ast.Node) error {
				names := map[string]string{}
				tenants[tenant][principal] = names
				return f.each(node, "a principal", func(name string, node ast.Node) error {
					value, ok := text(node)
					if !ok || value == "" {
						return f.at(node, "a secret must be a text that is not empty")
					}
					names[name] = value
					return nil
				})
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return tenants, nil
}

// each visits the entries of a mapping.
func (f *File) each(node ast.Node, what string, visit func(key string, value ast.Node) error) error {
	var values []*ast.MappingValueNode
	switch mapping := node.(type) {
	case *ast.MappingNode:
		values = mapping.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{mapping}
	case *ast.NullNode:
		return nil
	default:
		return f.at(node, what+" must be a mapping")
	}
	seen := map[string]bool{}
	for _, value := range values {
		key, ok := text(value.Key)
		switch {
		case !ok || key == "":
			return f.at(value, "a key must be a text")
		case seen[key]:
			return f.at(value, "a key stands twice in "+what)
		}
		seen[key] = true
		if err := visit(key, value.Value); err != nil {
			return err
		}
	}
	return nil
}

// text returns a scalar that is written as a text.
func text(node ast.Node) (string, bool) {
	switch scalar := node.(type) {
	case *ast.StringNode:
		return scalar.Value, true
	case *ast.LiteralNode:
		return scalar.Value.Value, true
	default:
		return "", false
	}
}

func (f *File) at(node ast.Node, what string) error {
	line := 0
	if token := node.GetToken(); token != nil && token.Position != nil {
		line = token.Position.Line
	}
	return failure.New(failure.KindSpecInvalid, fmt.Sprintf("%s:%d: %s", f.path, line, what), nil)
}

func (f *File) unusable(why string, cause error) error {
	return failure.New(failure.KindSpecInvalid, fmt.Sprintf("%s: the secrets file %s", f.path, why), cause)
}

func notFound(scope messages.Scope, name string) error {
	return failure.New(failure.KindCredentialNotFound,
		fmt.Sprintf("no credential named %q is known for %s", name, scope), nil)
}
