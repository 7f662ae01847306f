package config

import (
	"net/url"
	"strings"

	"github.com/psych-systems/psych-go/document"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/spec"
)

// The APIs of models.
const (
	// APIOpenAI is chat completions, of OpenAI or of any compatible endpoint.
	APIOpenAI = "openai"
	// APIAnthropic is Anthropic's messages.
	APIAnthropic = "anthropic"
	// APIScripted answers from a file.
	APIScripted = "scripted"
)

// Model is the endpoint of the models that Specs name.
type Model struct {
	// API is [APIOpenAI] where the file names none.
	API string `yaml:"api"`
	// BaseURL is absolute, http or https; "" for a script. Where the file names
	// none it is the public endpoint of the API.
	BaseURL string `yaml:"base_url"`
	// Credential is the name of a secret of the process, never its value; "" sends
	// none.
	Credential string `yaml:"credential"`
	// Script is the file from which a scripted model answers.
	Script string `yaml:"script"`
}

var publicEndpoints = map[string]string{
	APIOpenAI:    "https://api.openai.com/v1",
	APIAnthropic: "https://api.anthropic.com",
}

// WhyNot implements document.Explainer.
func (Model) WhyNot(field string) string {
	switch field {
	case "api_key", "key", "token":
		return "the configuration holds no secret, credential names one"
	case "model", "name":
		return "which model is asked stands in the Spec"
	default:
		return ""
	}
}

func (m *Model) fillDefaults() {
	if m.API == "" {
		m.API = APIOpenAI
	}
	if m.BaseURL == "" {
		m.BaseURL = publicEndpoints[m.API]
	}
}

func (m Model) validate(found *document.Problems) {
	switch m.API {
	case "", APIOpenAI, APIAnthropic:
		if m.Script != "" {
			found.Add("$.model.script", "only the scripted model has a script; write api: scripted for it")
		}
		if fault := endpointFault(m.BaseURL); m.BaseURL != "" && fault != "" {
			found.Add("$.model.base_url", "model.base_url %s", fault)
		}
		if fault := spec.CredentialFault(m.Credential); m.Credential != "" && fault != "" {
			found.Add("$.model.credential", "model.credential %s", fault)
		}
	case APIScripted:
		if m.Script == "" {
			found.Add("$.model", "the scripted model needs a script: the file from which it answers")
		}
		if m.BaseURL != "" {
			found.Add("$.model.base_url", "the scripted model has no endpoint")
		}
		if m.Credential != "" {
			found.Add("$.model.credential", "the scripted model needs no credential")
		}
	default:
		found.Add("$.model.api", "the model API %.80q is none of openai, anthropic and scripted", m.API)
	}
}

// endpointFault says what keeps a text from being the URL of an endpoint, in
// words that follow on the field's name; "" when nothing does.
func endpointFault(raw string) string {
	lower := strings.ToLower(raw)
	if !strings.HasPrefix(lower, "https://") && !strings.HasPrefix(lower, "http://") {
		return "must begin with https:// or http://"
	}
	parsed, err := url.Parse(raw)
	switch {
	case err != nil:
		return "is not a URL"
	case parsed.Hostname() == "":
		return "has no host"
	case parsed.User != nil:
		return "must not hold a user name or password; name a credential instead"
	case strings.ContainsAny(raw, "?#"):
		return "must not have a query or a fragment, because paths are put behind it"
	case !egress.ValidEndpoint(raw):
		return "has a host that is no name and no address"
	default:
		return ""
	}
}
