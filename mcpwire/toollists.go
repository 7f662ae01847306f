package mcpwire

import (
	"runtime"
	"sync"
	"weak"

	"github.com/psych-systems/psych-go/messages"
)

// ToolLists keeps one copy of a tool list for all sessions that were sent the very
// same bytes and told that these are public (MCP 2026-07-28, "Caching"). Each
// session fetches its own list; only the memory is shared, and it is let go of
// with the last session that uses it. The zero value is ready; it is safe for
// concurrent use.
type ToolLists struct {
	mu    sync.Mutex
	known map[listName]weak.Pointer[toolList]
}

// listName names the bytes of a list and how they were read.
type listName struct {
	etag string
	// modern says that tools with annotations which the revision forbids were left out.
	modern bool
}

// toolList is a list as it was read. It is never changed.
type toolList struct {
	tools    []*messages.Tool
	bindings map[string][]paramBinding
	// moved says that a tool stands in two pages in the same words.
	moved bool
}

// find returns the list of that name, nil when nobody has it.
func (l *ToolLists) find(name listName) *toolList {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[name].Value()
}

// join returns the list that all share: the given one, or an equal one that
// another session was faster with.
func (l *ToolLists) join(name listName, list *toolList) *toolList {
	if l == nil {
		return list
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.known[name].Value(); other != nil {
		return other
	}
	if l.known == nil {
		l.known = make(map[listName]weak.Pointer[toolList])
	}
	l.known[name] = weak.Make(list)
	runtime.AddCleanup(list, l.forget, name)
	return list
}

// forget drops a list that nobody uses, unless another of its name came meanwhile.
func (l *ToolLists) forget(name listName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[name].Value() == nil {
		delete(l.known, name)
	}
}
