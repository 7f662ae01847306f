package messages

import "google.golang.org/protobuf/proto"

// Question is a message whose asker waits for exactly one answer.
type Question interface {
	proto.Message
	// QuestionID names the question among those of its asker.
	QuestionID() string
	// Failed is the answer that says the question failed.
	Failed(why *Failure) proto.Message
}

// Failed is a [Catalogue] without a snapshot.
func (q *GetCatalogue) Failed(why *Failure) proto.Message {
	return &Catalogue{RequestId: q.GetRequestId(), Failure: why}
}

// Failed is a [CallDone] that says nothing was sent; an actor that may have
// sent the request answers itself.
func (q *CallTool) Failed(why *Failure) proto.Message {
	return &CallDone{CallId: q.GetCallId(), Failure: why}
}

// Failed is [Connections] without any.
func (q *ListConnections) Failed(why *Failure) proto.Message {
	return &Connections{RequestId: q.GetRequestId(), Failure: why}
}

// Failed is a [Disconnected] that closed nothing.
func (q *Disconnect) Failed(why *Failure) proto.Message {
	return &Disconnected{RequestId: q.GetRequestId(), Failure: why}
}

// Failed is a [TokenReady] without a token.
func (q *NeedToken) Failed(why *Failure) proto.Message {
	return &TokenReady{RequestId: q.GetRequestId(), Failure: why}
}

// QuestionID is the request's id.
func (q *NeedToken) QuestionID() string { return q.GetRequestId() }

// QuestionID is the request's id.
func (q *GetCatalogue) QuestionID() string { return q.GetRequestId() }

// QuestionID is the call's id.
func (q *CallTool) QuestionID() string { return q.GetCallId() }

// QuestionID is the request's id.
func (q *ListConnections) QuestionID() string { return q.GetRequestId() }

// QuestionID is the request's id.
func (q *Disconnect) QuestionID() string { return q.GetRequestId() }
