package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/psych-systems/psych-go/document"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/spec"
)

const (
	minTTL           = time.Second
	maxTTL           = 24 * time.Hour
	maxBudgetChars   = 100_000_000
	minResponseBytes = 1 << 10
	maxResponseBytes = 1 << 30
	// fileLimit bounds a configuration file, in bytes; a document has no more.
	fileLimit = 1 << 20
)

// written is a configuration as a file holds it.
type written struct {
	Store            Store             `yaml:"store"`
	Model            *Model            `yaml:"model"`
	Secrets          Secrets           `yaml:"secrets"`
	TokenStore       Store             `yaml:"token_store"`
	Tenants          map[string]Tenant `yaml:"tenants"`
	Egress           writtenEgress     `yaml:"egress"`
	Approvals        Approvals         `yaml:"approvals"`
	TrustAnnotations bool              `yaml:"trust_annotations"`
	Catalogue        Catalogue         `yaml:"catalogue"`
}

// WhyNot implements document.Explainer.
func (written) WhyNot(field string) string {
	switch field {
	case "allow", "servers", "describe":
		return "it belongs to one of the tenants"
	case "mcp_servers", "instructions", "limits", "tools":
		return "it belongs to a Spec"
	default:
		return ""
	}
}

// Load reads a configuration file. It fails with [failure.SpecInvalid], whose
// sentence begins with the file's path.
func Load(path string) (Config, error) {
	data, err := read(path)
	if err != nil {
		why := "cannot be read"
		if errors.Is(err, fs.ErrNotExist) {
			why = "does not exist"
		}
		return Config{}, failure.New(failure.KindSpecInvalid, fmt.Sprintf("%s: the configuration file %s", path, why), err)
	}
	return Parse(path, data)
}

// read reads a file as far as it may reach, and one byte more.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, fileLimit+1))
}

// Parse reads a configuration from YAML or JSON of at most 1 MiB. Relative paths
// in it are relative to the directory of file. It fails with
// [failure.SpecInvalid], whose sentence begins with FILE:LINE.
func Parse(file string, data []byte) (Config, error) {
	config := Default()
	in := written{
		Store: config.Store, TokenStore: config.TokenStore,
		Approvals: config.Approvals, Catalogue: config.Catalogue,
	}
	source, err := document.Decode(file, data, &in)
	if err != nil {
		return Config{}, err
	}
	var found document.Problems
	in.validate(&found)
	config.Egress = in.Egress.read(&found)
	if err := source.First(found); err != nil {
		return Config{}, err
	}
	config.Store, config.TokenStore = in.Store.beside(file), in.TokenStore.beside(file)
	config.Secrets = in.Secrets
	config.Secrets.File = beside(file, in.Secrets.File)
	if in.Model != nil {
		config.Model = in.Model
		config.Model.fillDefaults()
		config.Model.Script = beside(file, in.Model.Script)
	}
	config.Tenants, config.Approvals, config.Catalogue = in.Tenants, in.Approvals, in.Catalogue
	config.TrustAnnotations = in.TrustAnnotations
	return config, nil
}

func (w written) validate(found *document.Problems) {
	if w.TokenStore.Kind == Postgres && w.TokenStore != w.Store {
		found.Add("$.token_store", "tokens are kept in the store's PostgreSQL or in none; write the URL of store here")
	}
	if w.Model != nil {
		w.Model.validate(found)
	}
	if fault := spec.CredentialFault(w.Secrets.IdentityKey); w.Secrets.IdentityKey != "" && fault != "" {
		found.Add("$.secrets.identity_key", "secrets.identity_key %s", fault)
	}
	validateTenants(w.Tenants, found)
	w.Approvals.validate(found)
	w.Catalogue.validate(found)
}

func (c Catalogue) validate(found *document.Problems) {
	if c.TTL < minTTL || c.TTL > maxTTL {
		found.Add("$.catalogue.ttl", "catalogue.ttl must be from 1s to 24h")
	}
	if c.BudgetChars < 0 || c.BudgetChars > maxBudgetChars {
		found.Add("$.catalogue.budget_chars", "catalogue.budget_chars must be from 0 to %d", maxBudgetChars)
	}
	if c.MaxResponseBytes < minResponseBytes || c.MaxResponseBytes > maxResponseBytes {
		found.Add("$.catalogue.max_response_bytes", "catalogue.max_response_bytes must be from %d (1 KiB) to %d (1 GiB)", minResponseBytes, maxResponseBytes)
	}
}

// beside resolves a path against the directory of a file; "" stays "".
func beside(file, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

func (s Store) beside(file string) Store {
	s.Path = beside(file, s.Path)
	return s
}
