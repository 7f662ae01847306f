package run

import (
	"fmt"
	"slices"

	"github.com/psych-systems/psych-go/model"
)

// shownResult is how many bytes of one tool result reach the model. The record
// has the whole of it.
const shownResult = 64 << 10

// shownConversation is the conversation as the model reads it: results that are
// too long are cut in their middle, and say so. Where none is, it is the very
// conversation, which the log only ever appends to.
func shownConversation(conversation []model.Message) []model.Message {
	shown := slices.Clip(conversation)
	for i, message := range conversation {
		if message.Role != model.RoleTool || len(message.Text) <= shownResult {
			continue
		}
		if &shown[0] == &conversation[0] {
			shown = slices.Clone(conversation)
		}
		shown[i].Text = cutMiddle(message.Text, shownResult)
	}
	return shown
}

// cutMiddle keeps the head and the tail of a text, on rune borders.
func cutMiddle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := text[:limit/2], text[len(text)-limit/2:]
	for len(head) > 0 && !endsRune(text, len(head)) {
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !endsRune(text, len(text)-len(tail)) {
		tail = tail[1:]
	}
	cut := len(text) - len(head) - len(tail)
	return fmt.Sprintf("%s\n[… %d bytes were cut out here …]\n%s", head, cut, tail)
}

// endsRune reports whether a rune of text ends before index i.
func endsRune(text string, i int) bool {
	return i == 0 || i == len(text) || text[i]&0xC0 != 0x80
}
