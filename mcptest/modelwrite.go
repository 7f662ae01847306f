package mcptest

import (
	"encoding/json"
	"net/http"
)

// object is JSON under construction; its members are sorted when it is encoded.
type object map[string]any

// write sends an answer.
func (a ModelAnswer) write(w http.ResponseWriter, spoken api, request ModelRequest, hr *http.Request) {
	if a.released != nil {
		select {
		case <-a.released:
		case <-hr.Context().Done():
			return
		}
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	switch {
	case a.raw != nil:
		w.WriteHeader(max(a.status, http.StatusOK))
		writeFlushed(w, *a.raw)
	case a.failed != nil:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.status)
		writeFlushed(w, encode(spoken.failure(a.status, *a.failed)))
	case request.Stream:
		beginEvents(w)
		a.writeChunks(w, spoken, request, hr)
	default:
		w.Header().Set("Content-Type", "application/json")
		body := encode(spoken.completion(a, request))
		if a.breaking != breaksNot {
			body = body[:len(body)/2]
		}
		writeFlushed(w, body)
		a.stop(w, spoken, hr)
	}
}

// writeChunks sends an answer as a stream.
func (a ModelAnswer) writeChunks(w http.ResponseWriter, spoken api, request ModelRequest, hr *http.Request) {
	chunks, end := spoken.chunks(a, request)
	for i, chunk := range chunks {
		if a.breaking != breaksNot && i == a.after {
			break
		}
		writeFlushed(w, chunk)
	}
	if a.breaking != breaksNot {
		a.stop(w, spoken, hr)
		return
	}
	writeFlushed(w, end)
}

// stop is how a broken answer ends.
func (a ModelAnswer) stop(w http.ResponseWriter, spoken api, hr *http.Request) {
	switch a.breaking {
	case breaksNot, breaksEnd:
	case breaksCut:
		panic(http.ErrAbortHandler)
	case breaksIdle:
		<-hr.Context().Done()
	case breaksError:
		writeFlushed(w, spoken.event(a.extra))
	}
}

// halves splits a call's arguments in two, between characters.
func halves(arguments string) []string {
	half := len(arguments) / 2
	for half > 0 && arguments[half]>>6 == 0b10 { // inside a character
		half--
	}
	return []string{arguments[:half], arguments[half:]}
}

// pieces splits a text into pieces of at most 8 characters.
func pieces(text string) (split []string) {
	characters := []rune(text)
	for len(characters) > 0 {
		n := min(8, len(characters))
		split = append(split, string(characters[:n]))
		characters = characters[n:]
	}
	return split
}

func encode(value object) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // it holds nothing that JSON does not know
	}
	return string(encoded)
}
