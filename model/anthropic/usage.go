package anthropic

import "github.com/psych-systems/psych-go/model"

// usage is what an answer cost, as the API tells of it: at the start, and again at
// the end with what has become of it. A member that is absent or null says nothing.
//
// The API counts the input as [model.Usage] does: what a cache supplied or stored is
// apart from it.
type usage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	OutputOf   struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// addTo lets each count that was reported take the place of the one before.
func (u *usage) addTo(total *model.Usage) {
	if u == nil {
		return
	}
	for _, count := range []struct {
		reported *int64
		into     **int64
	}{
		{u.Input, &total.Input}, {u.Output, &total.Output}, {u.CacheRead, &total.CacheRead},
		{u.CacheWrite, &total.CacheWrite}, {u.OutputOf.Thinking, &total.Reasoning},
	} {
		if count.reported != nil && *count.reported >= 0 {
			*count.into = count.reported
		}
	}
}
