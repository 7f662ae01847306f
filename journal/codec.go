package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// header is what every record has besides its entry.
type header struct {
	RunID string    `json:"run_id"`
	Seq   int64     `json:"seq"`
	At    time.Time `json:"at"`
	Type  Type      `json:"type"`
}

// MarshalJSON writes the record as one flat object: the common fields first,
// then the entry's own.
func (r Record) MarshalJSON() ([]byte, error) {
	if r.Entry == nil {
		return nil, fmt.Errorf("record %d of run %s has no entry", r.Seq, r.RunID)
	}
	head, err := json.Marshal(header{RunID: r.RunID, Seq: r.Seq, At: r.At, Type: r.Entry.Type()})
	if err != nil {
		return nil, err
	}
	entry, err := json.Marshal(r.Entry)
	if err != nil {
		return nil, err
	}
	flat := append(head[:len(head)-1], ',')
	return append(flat, entry[1:]...), nil
}

// UnmarshalJSON reads what [Record.MarshalJSON] wrote. An unknown type is an
// error: a log is never read in part.
func (r *Record) UnmarshalJSON(data []byte) error {
	var head header
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	entry, err := decodeEntry(head.Type, data)
	if err != nil {
		return fmt.Errorf("record %d of run %s: %w", head.Seq, head.RunID, err)
	}
	*r = Record{RunID: head.RunID, Seq: head.Seq, At: head.At, Entry: entry}
	return nil
}

func decodeEntry(kind Type, data []byte) (Entry, error) {
	switch kind {
	case TypeRunStarted:
		return decode[RunStarted](data)
	case TypeTurnStarted:
		return decode[TurnStarted](data)
	case TypeModelCallFinished:
		return decode[ModelCallFinished](data)
	case TypeToolCallStarted:
		return decode[ToolCallStarted](data)
	case TypeToolCallFinished:
		return decode[ToolCallFinished](data)
	case TypeRunFinished:
		return decode[RunFinished](data)
	default:
		return nil, fmt.Errorf("%q is no record type", string(kind))
	}
}

func decode[E Entry](data []byte) (Entry, error) {
	var entry E
	err := json.Unmarshal(data, &entry)
	return entry, err
}

// requestedCall is a [RequestedCall] in JSON.
type requestedCall struct {
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// MarshalJSON writes the arguments as the JSON object that they are, and as a
// string where they are none.
func (c RequestedCall) MarshalJSON() ([]byte, error) {
	arguments := json.RawMessage(c.Arguments)
	// Space that is none to JSON makes them no object.
	if trimmed := bytes.TrimSpace(arguments); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(arguments) {
		quoted, err := json.Marshal(c.Arguments)
		if err != nil {
			return nil, err
		}
		arguments = quoted
	}
	return json.Marshal(requestedCall{CallID: c.CallID, Name: c.Name, Arguments: arguments})
}

// UnmarshalJSON reads what [RequestedCall.MarshalJSON] wrote.
func (c *RequestedCall) UnmarshalJSON(data []byte) error {
	var call requestedCall
	if err := json.Unmarshal(data, &call); err != nil {
		return err
	}
	*c = RequestedCall{CallID: call.CallID, Name: call.Name, Arguments: string(call.Arguments)}
	if len(call.Arguments) > 0 && call.Arguments[0] == '"' {
		return json.Unmarshal(call.Arguments, &c.Arguments)
	}
	return nil
}
