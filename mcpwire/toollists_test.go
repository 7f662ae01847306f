package mcpwire

import (
	"runtime"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/messages"
)

// TestASharedListIsLetGoOf watches the table itself: nothing else tells that a
// list which nobody uses is gone.
func TestASharedListIsLetGoOf(t *testing.T) {
	var lists ToolLists
	name := listName{"etag", true}
	list := lists.join(name, &toolList{tools: []*messages.Tool{{Name: "a"}}})
	if again := lists.join(name, &toolList{}); again != list || lists.find(name) != list {
		t.Error("an equal list that came later is kept beside the first")
	}
	if lists.find(listName{"etag", false}) != nil {
		t.Error("a list is shared between eras that read it differently")
	}
	runtime.KeepAlive(list)
	count := func() int {
		lists.mu.Lock()
		defer lists.mu.Unlock()
		return len(lists.known)
	}
	for deadline := time.Now().Add(30 * time.Second); count() != 0; time.Sleep(time.Millisecond) {
		if runtime.GC(); time.Now().After(deadline) {
			t.Fatal("a list that nobody uses is kept")
		}
	}
	if lists.find(name) != nil {
		t.Error("a list that is gone is found")
	}
}
