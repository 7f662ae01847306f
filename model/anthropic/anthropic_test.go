package anthropic_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/anthropic"
	"github.com/psych-systems/psych-go/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var question = model.Request{Model: "m-1", Messages: []model.Message{{Role: model.RoleUser, Text: "hello"}}}

// port asks a played endpoint, with pauses too short to notice.
func port(t *testing.T, played *mcptest.Model, change ...func(*anthropic.Options)) *anthropic.Model {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	options := anthropic.Options{
		BaseURL: played.AnthropicURL(), Client: &http.Client{Transport: transport}, Backoff: time.Millisecond,
	}
	for _, each := range change {
		each(&options)
	}
	m, err := anthropic.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func withKey(value string) func(*anthropic.Options) {
	return func(o *anthropic.Options) {
		o.Key = func(context.Context) (secret.Text, error) { return secret.NewText(value), nil }
	}
}

// streams answers with these events as they are, without their names: the type in
// an event's data is enough.
func streams(events ...string) mcptest.ModelAnswer {
	return mcptest.ModelEvents("data: " + strings.Join(events, "\n\ndata: ") + "\n\n")
}

const (
	begun   = `{"type":"message_start","message":{"id":"msg_1","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`
	stopped = `{"type":"message_stop"}`
)

func ends(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":7}}`
}

func says(piece string) string {
	return `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + piece + `"}}`
}

func wantFailure(t *testing.T, err error, kind failure.Kind, words ...string) {
	t.Helper()
	if err == nil || failure.KindOf(err) != kind {
		t.Fatalf("got %v (%s), want %s", err, failure.KindOf(err), kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the sentence %q lacks %q", err, word)
		}
	}
}
