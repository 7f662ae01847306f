package spec

import (
	"strings"
	"time"

	"github.com/psych-systems/psych-go/document"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/narrow"
)

const (
	maxTurns    = 1000
	maxDeadline = 24 * time.Hour
	// maxModel bounds a model's id, in bytes.
	maxModel = 256
)

// validate finds everything that keeps a Spec from having a Version.
func validate(s Spec) document.Problems {
	var found document.Problems
	if !namePattern.MatchString(s.Name) {
		found.Add("$.name", "the name %.80q %s", s.Name, nameRule)
	}
	if !printable(s.Instructions, "\n\r\t") {
		found.Add("$.instructions", "the instructions must be UTF-8 text without control characters")
	}
	switch model := s.Model.Model; {
	case strings.TrimSpace(model) == "":
		found.Add("$.model.model", "the Spec must name its model, as in model: {model: gpt-5}")
	case len(model) > maxModel || strings.TrimSpace(model) != model || !printable(model, ""):
		found.Add("$.model.model", "the model's name must be one line of at most %d bytes without space around it", maxModel)
	}
	if s.Limits.MaxTurns < 0 || s.Limits.MaxTurns > maxTurns {
		found.Add("$.limits.max_turns", "max_turns must be from 1 to %d", maxTurns)
	}
	if s.Limits.Deadline < 0 || s.Limits.Deadline > maxDeadline {
		found.Add("$.limits.deadline", "the deadline must be longer than 0 and at most 24h")
	}
	aliases := make(map[string]bool, len(s.MCPServers))
	for i, server := range s.MCPServers {
		path := document.Index("$.mcp_servers", i)
		server.validate(path, &found)
		if aliases[server.Name] {
			found.Add(path+".name", "the server alias %.80q stands twice", server.Name)
		}
		aliases[server.Name] = true
	}
	validateTools(s, &found)
	return found
}

func (s Server) validate(path string, found *document.Problems) {
	if fault := AliasFault(s.Name); fault != "" {
		found.Add(path+".name", "the server alias %.80q %s", s.Name, fault)
	}
	if _, err := messages.CanonicalURL(s.URL); err != nil {
		found.Add(path+".url", "%v", err)
	}
	switch s.Transport {
	case "", messages.TransportHTTP, messages.TransportSSE:
	case "stdio":
		found.Add(path+".transport", "stdio is no transport here: one process serves many tenants and starts no programs for them; run the server behind Streamable HTTP")
	default:
		found.Add(path+".transport", "the transport %.80q is neither http nor sse", string(s.Transport))
	}
	switch s.Session {
	case "", SessionShared, SessionRun:
	default:
		found.Add(path+".session", "the session %.80q is neither shared nor run", string(s.Session))
	}
	for i, pattern := range s.Allow {
		if !narrow.ValidPattern(pattern) || !printable(pattern, "") {
			found.Add(document.Index(path+".allow", i), "the pattern %.80q must be a tool's name, or how one begins with a \"*\" at its end", pattern)
		}
	}
	switch {
	case s.OAuth != nil && s.Credential != "":
		found.Add(path+".credential", "a server has either a credential or oauth, not both")
	case s.Credential != "" && CredentialFault(s.Credential) != "":
		found.Add(path+".credential", "credential %s", CredentialFault(s.Credential))
	}
	if s.OAuth != nil {
		s.OAuth.validate(path+".oauth", found)
	}
}

// validateTools checks the host tools' names, which are public as they are.
func validateTools(s Spec, found *document.Problems) {
	wearers := make(map[string]string, len(s.MCPServers))
	for _, server := range s.MCPServers {
		wearers[narrow.Prefix(server.Name)] = server.Name
	}
	seen := make(map[string]bool, len(s.Tools))
	for i, tool := range s.Tools {
		path := document.Index("$.tools", i)
		switch {
		case !narrow.Legal(tool):
			found.Add(path, "the host tool %.80q must have 1 to %d letters, digits, \"_\" and \"-\"", tool, narrow.MaxName)
		case seen[tool]:
			found.Add(path, "the host tool %q stands twice", tool)
		case narrow.Reserved(tool):
			found.Add(path, "the host tool %q has the name of a built-in tool", tool)
		}
		seen[tool] = true
		for end := range len(tool) + 1 {
			if server, worn := wearers[tool[:end]]; worn {
				found.Add(path, "the host tool %q wears the prefix of the server %q and could be taken for one of its tools", tool, server)
				break
			}
		}
	}
}
