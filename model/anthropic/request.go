package anthropic

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/endpoint"
)

// maxTokens is how long an answer may be, in tokens; the API wants it said. It is
// half of what the least of the models in service can say, so that every one takes
// it and leaves most of its context window to the conversation. Only what is said
// counts and is paid for, and an answer that needs more is told of as cut.
const maxTokens = 32_000

// cacheMark ends a prefix that the provider may keep and find again.
const cacheMark = `"cache_control":{"type":"ephemeral"}`

// turn is one message as the API takes it: a role that differs from the one before,
// and the members of each block, without braces.
type turn struct {
	role   model.Role
	blocks [][]byte
}

// encode writes the body of one request. It is put together by hand around the
// tools' schemas and the calls' inputs, because every encoder of JSON would rewrite
// those.
//
// The provider's cache keeps what stands before a mark, in the order tools, system,
// messages. One mark ends the tools and the system, which stay the same through a
// Run. One ends the conversation so far, for the next turn to find; and one stands
// where the request before this one ended, because the provider looks only some
// twenty blocks back for what it has kept.
func encode(request model.Request) ([]byte, error) {
	body := &bytes.Buffer{}
	body.WriteString(`{"model":`)
	if err := endpoint.Write(body, request.Model); err != nil {
		return nil, err
	}
	body.WriteString(`,"max_tokens":` + strconv.Itoa(maxTokens))
	hasSystem := strings.TrimSpace(request.System) != ""
	for i, tool := range request.Tools {
		if i == 0 {
			body.WriteString(`,"tools":[{`)
		} else {
			body.WriteString(`,{`)
		}
		if err := endpoint.WriteTool(body, tool, "input_schema"); err != nil {
			return nil, err
		}
		last := i == len(request.Tools)-1
		if last && !hasSystem {
			body.WriteString(`,` + cacheMark)
		}
		body.WriteByte('}')
		if last {
			body.WriteByte(']')
		}
	}
	if hasSystem {
		body.WriteString(`,"system":[{"type":"text","text":`)
		if err := endpoint.Write(body, request.System); err != nil {
			return nil, err
		}
		body.WriteString(`,` + cacheMark + `}]`)
	}
	turns, err := turnsOf(request.Messages)
	if err != nil {
		return nil, err
	}
	body.WriteString(`,"messages":[`)
	for i, said := range turns {
		if i > 0 {
			body.WriteByte(',')
		}
		// A user's turn follows every answer, so the request before ended two turns ago.
		said.write(body, i == len(turns)-1 || i == len(turns)-3)
	}
	body.WriteString(`],"stream":true}`)
	return body.Bytes(), nil
}

func (t turn) write(body *bytes.Buffer, marked bool) {
	body.WriteString(`{"role":"` + string(t.role) + `","content":[`)
	for i, block := range t.blocks {
		if i > 0 {
			body.WriteByte(',')
		}
		body.WriteByte('{')
		body.Write(block)
		if marked && i == len(t.blocks)-1 {
			body.WriteString(`,` + cacheMark)
		}
		body.WriteByte('}')
	}
	body.WriteString(`]}`)
}

// turnsOf puts the conversation into turns. A turn's tool results come first, in the
// order of their calls, as the API demands.
func turnsOf(messages []model.Message) ([]turn, error) {
	var turns []turn
	for i := 0; i < len(messages); i++ {
		said := messages[i]
		var blocks [][]byte
		var err error
		if said.Role == model.RoleTool {
			var results []model.Message
			results, i = resultsAt(messages, i)
			said.Role = model.RoleUser
			blocks, err = resultBlocks(results)
		} else {
			blocks, err = saidBlocks(said)
		}
		switch {
		case err != nil:
			return nil, err
		case len(blocks) == 0:
		case len(turns) > 0 && turns[len(turns)-1].role == said.Role:
			last := &turns[len(turns)-1]
			last.blocks = append(last.blocks, blocks...)
		default:
			turns = append(turns, turn{role: said.Role, blocks: blocks})
		}
	}
	return turns, nil
}

// saidBlocks are the text and the calls of a message.
func saidBlocks(said model.Message) (blocks [][]byte, err error) {
	if strings.TrimSpace(said.Text) != "" { // the API refuses a text that says nothing
		block, err := textBlock(said.Text)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	for _, asked := range said.ToolCalls {
		block, err := callBlock(asked)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

func resultBlocks(results []model.Message) (blocks [][]byte, err error) {
	for _, result := range results {
		block, err := resultBlock(result)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

// resultsAt are the results that begin at index i, in the order of their calls, and
// the index of the last of them.
func resultsAt(messages []model.Message, i int) (results []model.Message, last int) {
	order := map[string]int{}
	if i > 0 {
		for place, asked := range messages[i-1].ToolCalls {
			order[asked.ID] = place
		}
	}
	last = i
	for last+1 < len(messages) && messages[last+1].Role == model.RoleTool {
		last++
	}
	results = slices.Clone(messages[i : last+1])
	slices.SortStableFunc(results, func(a, b model.Message) int { return order[a.CallID] - order[b.CallID] })
	return results, last
}

func textBlock(text string) ([]byte, error) {
	block := &bytes.Buffer{}
	block.WriteString(`"type":"text","text":`)
	err := endpoint.Write(block, text)
	return block.Bytes(), err
}

func resultBlock(result model.Message) ([]byte, error) {
	block := &bytes.Buffer{}
	block.WriteString(`"type":"tool_result","tool_use_id":`)
	if err := endpoint.Write(block, result.CallID); err != nil {
		return nil, err
	}
	if strings.TrimSpace(result.Text) != "" {
		text, err := textBlock(result.Text)
		if err != nil {
			return nil, err
		}
		block.WriteString(`,"content":[{`)
		block.Write(text)
		block.WriteString(`}]`)
	}
	if result.Failed {
		block.WriteString(`,"is_error":true`)
	}
	return block.Bytes(), nil
}

// callBlock tells the model of a call that it asked for. The API takes an object as
// input and nothing else; a text that is none is sent inside of one, so that the
// model sees what it did.
func callBlock(asked model.ToolCall) ([]byte, error) {
	block := &bytes.Buffer{}
	block.WriteString(`"type":"tool_use","id":`)
	if err := endpoint.Write(block, asked.ID); err != nil {
		return nil, err
	}
	block.WriteString(`,"name":"` + plainName(asked.Name) + `","input":`)
	switch arguments := strings.TrimSpace(asked.Arguments); {
	case arguments == "":
		block.WriteString(`{}`)
	case strings.HasPrefix(arguments, "{") && json.Valid([]byte(arguments)) && utf8.ValidString(arguments):
		block.WriteString(arguments)
	default:
		err := endpoint.Write(block, map[string]string{"INVALID_JSON": asked.Arguments})
		return block.Bytes(), err
	}
	return block.Bytes(), nil
}

// nameLimit is how long a name the API takes, in bytes.
const nameLimit = 128

// plainName makes a name that a model made up fit for the API, which would refuse
// the whole conversation for it.
func plainName(name string) string {
	if name == "" {
		return "_"
	}
	plain := strings.Map(func(r rune) rune {
		if isPlain(string(r)) {
			return r
		}
		return '_'
	}, name)
	return plain[:min(len(plain), nameLimit)]
}

// isPlain reports whether a text has only characters that the API takes in ids and
// names.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}
