package main

import (
	"context"
	"fmt"
	"time"

	"github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/approval"
	"github.com/psych-systems/psych-go/config"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model/scripted"
	"github.com/psych-systems/psych-go/secret"
)

// closeLimit is how long a command waits for the end of its runtime.
const closeLimit = 5 * time.Second

// deployment is a configuration with the sources of its secrets.
type deployment struct {
	// file is the configuration's path; "" where there is none.
	file   string
	config config.Config
	// secrets is what resolves credentials; nil resolves none.
	secrets secret.Resolver
	// own is where the process's own secrets are kept, in order.
	own []processSecrets
}

// processSecrets keeps the secrets that lie outside all tenants.
type processSecrets interface {
	Process(name string) (secret.Text, error)
}

// readDeployment reads a configuration file, "" for the defaults, and refuses
// what this version cannot do.
func readDeployment(file string) (*deployment, error) {
	d := &deployment{file: file, config: config.Default()}
	if file != "" {
		read, err := config.Load(file)
		if err != nil {
			return nil, err
		}
		d.config = read
	}
	if kind := d.config.Store.Kind; kind != config.Memory {
		return nil, d.wrong("this version keeps records in memory only, so store must be memory: or left out and not %s", kind)
	}
	if kind := d.config.TokenStore.Kind; kind != config.Memory {
		return nil, d.wrong("this version keeps tokens in memory only, so token_store must be memory: or left out and not %s", kind)
	}
	return d, d.openSecrets()
}

// openSecrets makes the resolvers. The key of identities is one of the process's
// own secrets, so these are found first.
func (d *deployment) openSecrets() error {
	named := d.config.Secrets
	open := func(identities secret.Identities) (file *secret.File, chain secret.Chain) {
		if named.File != "" {
			file = secret.NewFile(named.File, identities)
			chain = append(chain, file)
		}
		if named.Environment {
			chain = append(chain, secret.NewEnvironment(identities))
		}
		return file, chain
	}
	identities := secret.NewIdentities(secret.Text{})
	file, chain := open(identities)
	if file != nil {
		if err := file.Check(); err != nil {
			return err
		}
	}
	for _, source := range chain {
		d.own = append(d.own, source.(processSecrets))
	}
	if named.IdentityKey != "" {
		key, err := d.ownSecret(named.IdentityKey)
		if err != nil {
			return d.wrong("secrets.identity_key cannot be used: %v", err)
		}
		_, chain = open(secret.NewIdentities(key))
	}
	if len(chain) > 0 {
		d.secrets = chain
	}
	return nil
}

// ownSecret finds one of the process's own secrets.
func (d *deployment) ownSecret(name string) (secret.Text, error) {
	for _, source := range d.own {
		value, err := source.Process(name)
		if failure.KindOf(err) != failure.KindCredentialNotFound {
			return value, err
		}
	}
	return secret.Text{}, failure.New(failure.KindCredentialNotFound,
		fmt.Sprintf("no credential named %q is kept for the process", name), nil)
}

// options is all that a runtime is made from, except its model.
func (d *deployment) options() psych.Options {
	c := d.config
	budget := c.Catalogue.BudgetChars
	if budget == 0 {
		budget = -1
	}
	tenants := make(map[string]psych.Tenant, len(c.Tenants))
	for name, tenant := range c.Tenants {
		tenants[name] = psych.Tenant{
			Servers: tenant.Servers, Allow: tenant.Allow,
			DenyHosts: tenant.Egress.DenyHosts, Describe: tenant.Describe,
		}
	}
	return psych.Options{
		MCP: &psych.MCP{
			Secrets: d.secrets, CatalogueTTL: c.Catalogue.TTL,
			BudgetChars: budget, MaxResponseBytes: c.Catalogue.MaxResponseBytes,
		},
		Tenants:          tenants,
		Egress:           egress.Policy(c.Egress),
		Approvals:        approval.Rules(c.Approvals),
		TrustAnnotations: c.TrustAnnotations,
	}
}

// model connects the configured model.
func (d *deployment) model() (psych.Model, error) {
	named := d.config.Model
	if named == nil {
		where := "into a file and give it with --config"
		if d.file != "" {
			where = "into " + d.file
		}
		return nil, wrong("no model is configured; write model: {api: openai, base_url: https://api.openai.com/v1, credential: NAME} "+where, nil)
	}
	switch named.API {
	case config.APIOpenAI:
		key, err := d.modelKey(named.Credential)
		return psych.OpenAI(named.BaseURL, key), err
	case config.APIAnthropic:
		key, err := d.modelKey(named.Credential)
		return psych.Anthropic(named.BaseURL, key), err
	case config.APIScripted:
		text, err := readFile(named.Script, "the script")
		if err != nil {
			return nil, err
		}
		script, err := scripted.Parse(named.Script, text)
		return psych.UseModel(script), err
	default:
		return nil, d.wrong("the model API %s is none of openai, anthropic and scripted", named.API)
	}
}

// modelKey returns what reads the model's key at each request; nil where the
// model has none.
func (d *deployment) modelKey(credential string) (func(context.Context) (secret.Text, error), error) {
	if credential == "" {
		return nil, nil
	}
	if _, err := d.ownSecret(credential); err != nil {
		return nil, d.wrong("model.credential cannot be used: %v", err)
	}
	return func(context.Context) (secret.Text, error) { return d.ownSecret(credential) }, nil
}

// wrong is a fault in the configuration file.
func (d *deployment) wrong(format string, args ...any) error {
	return wrong(d.file+": "+fmt.Sprintf(format, args...), nil)
}

// start makes a runtime that starts no Runs.
func (p *program) start(file string) (*psych.Runtime, error) {
	d, err := readDeployment(file)
	if err != nil {
		return nil, err
	}
	return p.startWith(d, nil)
}

// startWith makes a runtime with a model; nil for none.
func (p *program) startWith(d *deployment, model psych.Model) (*psych.Runtime, error) {
	logger, err := p.logger()
	if err != nil {
		return nil, err
	}
	options := d.options()
	options.Model, options.Logger = model, logger
	return psych.New(options)
}

// closeRuntime ends a runtime and all its connections.
func closeRuntime(rt *psych.Runtime) {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = rt.Close(ctx)
}
