package spec

// WhyNot implements document.Explainer.
func (Spec) WhyNot(field string) string {
	switch field {
	case "version", "hash":
		return "the Version of a Spec is computed from what it says"
	case "tenant", "principal", "scope":
		return "whom a Run acts for is told when it is started"
	default:
		return ""
	}
}

// WhyNot implements document.Explainer.
func (Model) WhyNot(field string) string {
	switch field {
	case "api", "base_url", "credential":
		return "a model's endpoint belongs to the configuration of the deployment"
	default:
		return ""
	}
}

// WhyNot implements document.Explainer.
func (Server) WhyNot(field string) string {
	switch field {
	case "command", "args", "env":
		return "no server is started as a program, so give the url of one that runs"
	case "headers", "authorization", "token", "api_key", "password":
		return "a Spec holds no secret, it names a credential"
	case "tools":
		return "its tools are discovered, and allow narrows them"
	case "deny":
		return "a Spec says what it allows"
	default:
		return ""
	}
}
