package journal_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/psych-systems/psych-go/journal"
)

// A record that can be read is written the same each time that it is read back,
// and a log is folded or refused.
func FuzzRecord(f *testing.F) {
	for _, record := range aRun() {
		encoded, err := json.Marshal(record)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Add([]byte(`{"run_id":"r","seq":1,"at":"2026-01-02T03:04:05Z","type":"surprise"}`))
	f.Add([]byte(`{"type":"tool_call_started","arguments":{"a": "<\u2028>"},"seq":1e3}`))
	f.Add([]byte(`{"type":"model_call_finished","tool_calls":[{"arguments":"{\"a\":1}"},null,{"arguments":null}],"seq":1,"at":"2026-01-02T03:04:05Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var record journal.Record
		if json.Unmarshal(data, &record) != nil {
			return
		}
		written, err := json.Marshal(record)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", record, err)
		}
		var back journal.Record
		if err := json.Unmarshal(written, &back); err != nil {
			t.Fatalf("%s cannot be read back: %v", written, err)
		}
		again, err := json.Marshal(back)
		if err != nil || !bytes.Equal(again, written) {
			t.Fatalf("%s is written back as %s (%v)", written, again, err)
		}
	})
}

// Arguments of any form are told by the record as they came, but for the space
// between the parts of an object.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"a":1}`, `{"a":`, `null`, `"x"`, ` {"a":"<&>"}`, "{\"a\":\"\u2028\"}", `{"a":1}{"a":2}`, `"\ud800"`, "\t"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		written, err := json.Marshal(journal.RequestedCall{CallID: "c", Name: "n", Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		var back journal.RequestedCall
		if err := json.Unmarshal(written, &back); err != nil {
			t.Fatal(err)
		}
		var one, other any
		errOne, errOther := json.Unmarshal([]byte(arguments), &one), json.Unmarshal([]byte(back.Arguments), &other)
		if (errOne == nil) != (errOther == nil) {
			t.Fatalf("%q is told as %q", arguments, back.Arguments)
		}
		if errOne == nil {
			first, _ := json.Marshal(one)
			second, _ := json.Marshal(other)
			if !bytes.Equal(first, second) {
				t.Fatalf("%q is told as %q", arguments, back.Arguments)
			}
		}
	})
}
