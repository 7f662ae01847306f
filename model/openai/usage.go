package openai

import (
	"encoding/json"

	"github.com/psych-systems/psych-go/model"
)

// usageOf reads what an answer cost. A member that is absent, or that cannot be
// a count, was not reported.
func usageOf(raw json.RawMessage) (model.Usage, bool) {
	var reported *struct {
		Prompt     *int64 `json:"prompt_tokens"`
		Completion *int64 `json:"completion_tokens"`
		PromptOf   struct {
			Cached *int64 `json:"cached_tokens"`
			Stored *int64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionOf struct {
			Reasoning *int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if json.Unmarshal(raw, &reported) != nil || reported == nil {
		return model.Usage{}, false
	}
	usage := model.Usage{
		Output:     count(reported.Completion),
		CacheRead:  count(reported.PromptOf.Cached),
		CacheWrite: count(reported.PromptOf.Stored),
		Reasoning:  count(reported.CompletionOf.Reasoning),
	}
	if prompt := count(reported.Prompt); prompt != nil {
		// The endpoint counts all of the prompt; what a cache supplied or stored
		// is told apart.
		rest := *prompt
		for _, part := range []*int64{usage.CacheRead, usage.CacheWrite} {
			if part != nil {
				rest -= *part
			}
		}
		rest = max(rest, 0)
		usage.Input = &rest
	}
	return usage, true
}

func count(reported *int64) *int64 {
	if reported == nil || *reported < 0 {
		return nil
	}
	return reported
}
