package mcpwire

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// inbound is one message of a server, split but not decoded.
type inbound struct {
	id     []byte // raw; nil when absent
	method string // "" for a reply
	params []byte
	result []byte       // nil when absent
	fault  *ServerError // nil when absent
	// foreign is a message that is not JSON-RPC but talks of an error, as some
	// servers and proxies do.
	foreign bool
}

// ServerError is the error of a JSON-RPC reply.
type ServerError struct {
	Code    int64
	Message string
	// Data is the raw data member; nil when absent.
	Data []byte
}

// addressed says that the message has an id.
func (m *inbound) addressed() bool { return !absent(m.id) }

// request says that the server waits for an answer.
func (m *inbound) request() bool { return m.method != "" && m.addressed() }

// reply says that the message answers a request.
func (m *inbound) reply() bool { return m.method == "" && (m.result != nil || m.fault != nil) }

// answers says whether the message's id is the given one. Servers that write our
// number as a string or with a fraction mean it all the same.
func (m *inbound) answers(id int64) bool {
	got, ok := m.number()
	return ok && got == id
}

// number is the message's id as the number that our ids are.
func (m *inbound) number() (int64, bool) {
	raw := bytes.Trim(m.id, `"`)
	if got, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return got, true
	}
	got, err := strconv.ParseFloat(string(raw), 64)
	return int64(got), err == nil && got == math.Trunc(got) && math.Abs(got) <= largestInteger
}

// decodeInbound visits the messages of a JSON text: one, or the several of an
// array, which servers of 2025-03-26 may send. What is no message is reported as
// one without method and reply.
func decodeInbound(text []byte, visit func(*inbound)) error {
	if firstByte(text) == '[' {
		var inner error
		err := eachElement(text, func(value []byte) {
			var m inbound
			if err := m.decode(value); err != nil {
				inner = err
				return
			}
			visit(&m)
		})
		if err != nil {
			return err
		}
		return inner
	}
	var m inbound
	if err := m.decode(text); err != nil {
		return err
	}
	visit(&m)
	return nil
}

// decodeEvent visits the messages of an event. Where its data as a whole is none,
// each line is tried for itself: an event that was begun and never ended runs
// into the next one, which is not at fault.
func decodeEvent(data []byte, visit func(*inbound)) error {
	err := decodeInbound(data, visit)
	if err == nil || bytes.IndexByte(data, '\n') < 0 {
		return err
	}
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		_ = decodeInbound(line, visit)
	}
	return err
}

func (m *inbound) decode(text []byte) error {
	var fault []byte
	err := eachMember(text, func(name, value []byte) {
		switch string(name) {
		case "id":
			m.id = value
		case "method":
			m.method, _ = textOf(value)
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			fault = value
		}
	})
	if err != nil || absent(fault) {
		return err
	}
	m.fault = decodeServerError(fault)
	m.foreign = m.fault == nil
	return nil
}

// decodeServerError reads a JSON-RPC error; nil when it is something else, as an
// error whose code is no integer.
func decodeServerError(raw []byte) *ServerError {
	if !json.Valid(raw) {
		return nil
	}
	found := ServerError{}
	coded := false
	err := eachMember(raw, func(name, value []byte) {
		switch string(name) {
		case "code":
			code, err := strconv.ParseInt(string(value), 10, 64)
			found.Code, coded = code, err == nil
		case "message":
			found.Message, _ = textOf(value)
		case "data":
			found.Data = bytes.Clone(value)
		}
	})
	if err != nil || !coded {
		return nil
	}
	return &found
}
