package narrow

// Class grades what a tool may do.
type Class string

// The classes.
const (
	ReadOnly    Class = "read-only"
	Write       Class = "write"
	Destructive Class = "destructive"
)

// Annotations are a tool's hints (MCP tools, "Tool Annotations"); nil fields
// were not given.
type Annotations struct {
	ReadOnly, Destructive, Idempotent *bool
}

// ClassOf grades a tool by its annotations; nil means that it has none, which
// makes it a writing tool. A tool with annotations is destructive unless they
// say otherwise, because that is the default that MCP gives destructiveHint.
func ClassOf(annotations *Annotations) Class {
	switch {
	case annotations == nil:
		return Write
	case isTrue(annotations.ReadOnly):
		return ReadOnly
	case annotations.Destructive != nil && !*annotations.Destructive:
		return Write
	default:
		return Destructive
	}
}

// Repeatable reports whether the annotations promise that calling twice does no
// more than calling once.
func (a *Annotations) Repeatable() bool {
	return a != nil && (isTrue(a.ReadOnly) || isTrue(a.Idempotent))
}

func isTrue(hint *bool) bool { return hint != nil && *hint }
