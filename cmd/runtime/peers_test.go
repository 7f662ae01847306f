package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/mcptest"
)

// The secrets of the stories. No output may hold any of them.
const (
	deskToken = "planted-desk-token-51c7"
	modelKey  = "planted-model-key-8f20"
)

// peersOf starts the peers of a story and returns the variables that name them.
func peersOf(t *testing.T, story string) []string {
	locked := mcptest.NewServer(t, mcptest.Instructions("The order desk."), mcptest.Tools(orderTools()...),
		mcptest.Authenticate(func(token string) ([]mcptest.Tool, bool) { return nil, token == deskToken }))
	open := mcptest.NewServer(t, mcptest.Legacy(mcptest.Version20251125), mcptest.Tools(orderTools()...))
	older := mcptest.NewServer(t, mcptest.HTTPSSE(), mcptest.Tools(orderTools()...))
	model := parrot(t)
	model.RequireKey(modelKey)
	variables := []string{
		"DESK=" + locked.URL(), "OPEN=" + open.URL(), "SSE=" + older.URL(), "DEAD=" + deadURL(t),
		"GORACE=" + os.Getenv("GORACE"), "MODEL=" + model.URL(), "ANTHROPIC=" + model.AnthropicURL(), "DESK_TOKEN=" + deskToken, "MODEL_KEY=" + modelKey,
	}
	if story == "everything" {
		variables = append(variables, everythingVariables(t)...)
	}
	return variables
}

func orderTools() []mcptest.Tool {
	const takesOrder = `{"type":"object","properties":{"order":{"type":"integer"}},"required":["order"]}`
	return []mcptest.Tool{
		{
			Name: "find_order", Description: "Find an order.", InputSchema: takesOrder,
			Annotations: `{"readOnlyHint":true}`,
			Call: func(_ context.Context, call mcptest.Call) mcptest.Result {
				return mcptest.Text("a teapot, for " + string(call.Arguments))
			},
		},
		{Name: "refund_order", Description: "Refund an order.", InputSchema: takesOrder, Annotations: `{"destructiveHint":true}`},
		{Name: "note", Description: "Write a note."},
	}
}

// parrot is a model that does as it is told: a user message of lines "call NAME
// ARGUMENTS" makes it ask for these calls, and it answers with their results; it
// repeats any other message.
func parrot(t *testing.T) *mcptest.Model {
	model := mcptest.NewModel(t)
	model.AnswerWith(func(request mcptest.ModelRequest) mcptest.ModelAnswer {
		var results []string
		asked := ""
		for _, message := range request.Messages {
			switch message.Role {
			case "user":
				asked = message.Content
			case "tool":
				results = append(results, message.Content)
			}
		}
		if len(results) > 0 {
			return mcptest.Say("I read: " + strings.Join(results, "; "))
		}
		var calls []mcptest.ModelCall
		for line := range strings.Lines(asked) {
			if call, isCall := strings.CutPrefix(strings.TrimSpace(line), "call "); isCall {
				name, arguments, _ := strings.Cut(call, " ")
				calls = append(calls, mcptest.ModelCall{ID: fmt.Sprintf("call_%d", len(calls)+1), Name: name, Arguments: arguments})
			}
		}
		if len(calls) == 0 {
			return mcptest.Say("You said: " + asked).Costs(mcptest.ModelUsage{Prompt: 12, Completion: 5})
		}
		return mcptest.Ask(calls...)
	})
	return model
}

// deadURL is the address of nobody.
func deadURL(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "http://" + listener.Addr().String() + "/mcp"
}
