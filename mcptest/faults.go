package mcptest

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Faults is every way in which the answer to one request can be wrong and still
// end, each under a name of its own: a table for tests that ask whether one fault
// costs one request and no more. Floods are twice as large as the client's ceiling.
//
// Some of them a client forgives: it finds the good reply in them all the same.
func Faults(ceiling int64) []Behaviour {
	return slices.Concat(wrongStatus(), wrongBody(), wrongMessage(), wrongEvents(), cuts(), floods(2*ceiling))
}

// Stalls is every way in which an answer can fail to end. Each ends with the
// client's patience.
func Stalls() []Behaviour {
	return []Behaviour{
		Hang(),
		HangAfterHeaders("application/json").Named("JSON headers, then nothing"),
		HangAfterHeaders("text/event-stream").Named("event-stream headers, then nothing"),
		HangHalfway(),
		Events(": hi\n\n").Then(Hang()).Named("a comment, then nothing"),
		Events("data: {\"jsonrpc\":").Then(Hang()).Named("half an event, then nothing"),
		Headers(http.StatusInternalServerError, "text/plain").Then(Hang()).Named("an error's headers, then nothing"),
		Drip("application/json", 5*time.Millisecond).Named("a drip of JSON"),
		Drip("text/event-stream", 5*time.Millisecond).Named("a drip of an event"),
		Events(": hi\n\n").Then(Drip("", 5*time.Millisecond)).Named("a comment, then a drip"),
	}
}

func wrongStatus() (all []Behaviour) {
	for _, status := range []int{400, 403, 404, 405, 408, 409, 413, 418, 422, 429, 500, 501, 502, 503, 504} {
		all = append(all, Status(status, "text/html", "<p>No.</p>"))
	}
	return append(all,
		Accepted(),
		Status(http.StatusNoContent, "", "").Named("204"),
		Unauthorized(`Bearer error="invalid_token"`),
		Unauthorized("").Named("401 without a challenge"),
		Forbidden(`Bearer error="insufficient_scope", scope="write"`).Named("403 with a challenge"),
		Status(http.StatusBadRequest, "application/json", `{"error":{"code":"odd","message":"no"}}`).Named("400 with an error that is no JSON-RPC"),
		Status(http.StatusBadRequest, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32600,"message":"no"}}`).Named("400 with a JSON-RPC error"),
		Status(http.StatusNotFound, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`).Named("404 with a null id"),
		Status(http.StatusInternalServerError, "text/event-stream", "data: $REPLY\n\n").Named("500 with a good event"),
		Status(http.StatusInternalServerError, "application/json", "$REPLY").Named("500 with a good reply"),
	)
}

func wrongBody() []Behaviour {
	return []Behaviour{
		JSON("").Named("an empty body"),
		JSON("null").Named("null"),
		JSON("{").Named("broken JSON"),
		JSON("$REPLY$REPLY").Named("two replies in one body"),
		JSON("\ufeff$REPLY").Named("JSON after a byte order mark"),
		JSON("{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}}").Named("JSON that is no UTF-8"),
		Body("text/html", "<p>Log in.</p>").Named("a page"),
		Body("text/plain", "$REPLY").Named("a reply as text"),
		Body("", "$REPLY").Named("a reply of no type"),
		Body("application/json; charset=utf-8", "$REPLY").Named("a reply with a charset"),
		Body("a/b/c;;", "$REPLY").Named("a reply of a type that is none"),
		Header("Content-Encoding", "gzip").Then(JSON("$REPLY")).Named("a reply that says it is packed"),
	}
}

func wrongMessage() []Behaviour {
	return []Behaviour{
		WrongID(), NullID(), Batch(), TextError("Session not found"),
		Message("{}").Named("an empty object"),
		Message("[]").Named("an empty batch"),
		Message(`"ok"`).Named("a text for a message"),
		Message(`{"jsonrpc":"2.0","id":$ID}`).Named("neither result nor error"),
		Message(`{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"no"}}`).Named("result and error"),
		Message(`{"jsonrpc":"1.0","id":$ID,"result":{}}`).Named("another JSON-RPC"),
		Message(`{"jsonrpc":"2.0","id":$ID,"error":"no"}`).Named("an error that is no object"),
		Message(`{"jsonrpc":"2.0","id":$ID,"error":{"code":"x","message":7}}`).Named("an error of wrong types"),
		Answer("null").Named("a null result"),
		Answer(`[]`).Named("a result that is a list"),
		Answer(`{"resultType":"later"}`).Named("a result of another type"),
		InputRequired(`{"a":{"method":"elicitation/create","params":{"message":"Who?"}}}`),
		Error(-32603, "Internal error", ""), Error(-32020, "Header mismatch", ""), Error(-32021, "Missing capability", ""),
		Error(-32022, "Unsupported version", `{"supported":["1999-01-01"],"requested":"2026-07-28"}`),
		Error(-32001, "Request timed out", ""),
		Nested(20_000),
	}
}

func wrongEvents() []Behaviour {
	reply := func(name, before string) Behaviour { return ReplyAfter(before).Named("a reply after " + name) }
	return []Behaviour{
		reply("a comment", ": hi\n\n"),
		reply("a line without a colon", "ping\n\n"),
		reply("a bare data line", "data\n\n"),
		reply("data that is no JSON", "data: ping\n\n"),
		reply("an empty object", "data: {}\n\n"),
		reply("an empty event", "event: ping\n\n"),
		reply("an unknown field", "colour: red\n\n"),
		reply("a byte order mark", "\ufeff: hi\n\n"),
		reply("a reply to nobody", "data: {\"jsonrpc\":\"2.0\",\"id\":\"nobody\",\"result\":{}}\n\n"),
		reply("a ping of the server", "data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n"),
		reply("a question of the server", "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n\n"),
		ReplyLines("\n").Named("data on two lines"),
		ReplyLines("\r\n").Named("CRLF line ends"),
		ReplyLines("\r").Named("CR line ends"),
		Events("data: [$REPLY]\n\n").Named("a batch in an event"),
		Events("event: other\ndata: $REPLY\n\n").Named("an event of another name"),
		Events("data: {\"error\":\"Session not found\"}\n\n").Named("an event that is no JSON-RPC"),
		Events("").Named("a stream without events"),
		CutEvent(),
		Prime(time.Millisecond),
		Events("id: x\ndata:\n\n").Named("an event id that nobody resumes"),
	}
}

func cuts() []Behaviour {
	return []Behaviour{
		Reset(), Close(), CutHalfway(), ResetHalfway(),
		Execute().Then(Reset()).Named("executed, then reset"),
		Execute().Then(Close()).Named("executed, then closed"),
		Execute().Then(Status(http.StatusBadGateway, "text/html", "<p>")).Named("executed, then 502"),
		Execute().Then(Status(http.StatusServiceUnavailable, "", "")).Named("executed, then 503"),
		Execute().Then(Status(http.StatusGatewayTimeout, "text/html", "<p>")).Named("executed, then 504"),
		Execute().Then(Status(http.StatusNotFound, "", "")).Named("executed, then 404"),
		Events(": hi\n\n").Then(Close()).Named("a stream that is cut"),
		Events(": hi\n\n").Then(Reset()).Named("a stream that is reset"),
	}
}

func floods(bytes int64) []Behaviour {
	return []Behaviour{
		Huge(bytes).Named("a huge body"),
		HugeEvent(bytes).Named("a huge event"),
		HugeStatus(http.StatusInternalServerError, bytes).Named("a huge error"),
		GzipBomb(bytes).Named("a gzip bomb"),
		Bomb(bytes, "gzip", "gzip").Named("a gzip bomb in gzip"),
		Bomb(bytes, "deflate").Named("a deflate bomb"),
		Bomb(bytes, "br").Named("a body that says it is brotli"),
		HugeHeader(2 << 20).Named("a reply under a huge header"),
		Progress(int(bytes/100) + 1).Named("very many notifications"),
		Answer(`{"content":[{"type":"text","text":"` + strings.Repeat("a", int(bytes)) + `"}]}`).Named("a huge text"),
	}
}
