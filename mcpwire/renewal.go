package mcpwire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"go.uber.org/zap"
)

// renewals decides when an older server's session counts as lost, and keeps one
// new session at a time in the making (MCP 2025-11-25, "Session Management").
type renewals struct {
	mu sync.Mutex
	// flight is the session being opened, nil for none; all who need it wait for it.
	flight *renewal
	// refuted are statuses that said nothing about the session once: the same
	// request met the same status in a new one. They are weak signs from then on,
	// until a new session helps against one: a session may be lost twice in a row.
	refuted map[int]bool
	// weak counts signs in a row that are no proof by themselves.
	weak int
	// streams are the streams of changes that are open, or being opened, in the
	// session that is agreed on.
	streams map[*span]struct{}
}

// errReplaced ends a stream of changes whose session has been replaced.
var errReplaced = errors.New("the session was lost and opened again")

// renewal is one new session in the making.
type renewal struct {
	done   chan struct{}
	agreed *agreement // set before done is closed; nil when it failed
}

// weakSigns is how many signs in a row that are no proof, without a success between
// them, are reason to ask whether the session is alive.
const weakSigns = 2

// sign is what a fault tells about the session it happened in.
type sign int

const (
	// silent tells nothing.
	silent sign = iota
	// doubtful tells that the session is worth a question.
	doubtful
	// gone tells that it is lost.
	gone
)

// read says what a fault tells about its session. The protocol's own sign of a
// lost one is a 404; servers and proxies use other words too.
func (r *renewals) read(agreed *agreement, fault *Fault) sign {
	if agreed == nil || agreed.session == "" {
		return silent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	suspect, strong := fault.suspects()
	switch {
	case strong && r.refuted[fault.Status]:
		return doubtful
	case strong:
		return gone
	case suspect:
		if r.weak++; r.weak >= weakSigns {
			return doubtful
		}
	}
	return silent
}

// suspects says whether a fault looks like a lost session at all, and whether in
// the words that most servers have for it.
func (f *Fault) suspects() (suspect, strong bool) {
	switch f.Status {
	case http.StatusNotFound, http.StatusGone:
		strong = true
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
		strong = !f.aboutRequest()
	case http.StatusUnauthorized:
		strong = !f.aboutRequest() && f.version == 0
	case http.StatusInternalServerError, http.StatusServiceUnavailable:
		suspect = !f.aboutRequest()
	}
	return suspect || strong || f.foreign, strong
}

// aboutRequest says that the server's error speaks of the request itself.
func (f *Fault) aboutRequest() bool {
	if f.Server == nil {
		return false
	}
	switch f.Server.Code {
	case codeMethodNotFound, codeInvalidParams, codeInternal:
		return true
	}
	return f.Server.modernCode() != 0
}

// proved says that the session is alive.
func (r *renewals) proved() {
	r.mu.Lock()
	r.weak = 0
	r.mu.Unlock()
}

// refute remembers that a status said nothing about the session.
func (r *renewals) refute(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuted == nil {
		r.refuted = make(map[int]bool)
	}
	r.refuted[status] = true
}

// confirm remembers that a new session helped against a status.
func (r *renewals) confirm(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.refuted, status)
}

// renew returns a session newer than the lost one. It is opened once for all who
// ask, away from any of them; nil when that fails or ctx ends first, and when the
// lost one was only doubted and is alive.
func (s *streamable) renew(ctx context.Context, lost *agreement, why sign, credential string) *agreement {
	if why == silent {
		return nil
	}
	flight := s.board(lost, why, credential)
	if flight == nil {
		return nil
	}
	select {
	case <-flight.done:
		return flight.agreed
	case <-ctx.Done():
		return nil
	}
}

func (s *streamable) board(lost *agreement, why sign, credential string) *renewal {
	r := &s.renewals
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := s.agreed.Load(); now != lost {
		landed := &renewal{done: make(chan struct{}), agreed: now}
		close(landed.done)
		return landed
	}
	if r.flight != nil {
		return r.flight
	}
	flight := &renewal{done: make(chan struct{})}
	if !s.spawn(func(ctx context.Context) { s.fly(ctx, flight, lost, why, credential) }) {
		return nil
	}
	r.flight = flight
	return flight
}

// fly opens the new session, unless the old one was only doubted and answers.
func (s *streamable) fly(ctx context.Context, flight *renewal, old *agreement, why sign, credential string) {
	ctx, cancel := context.WithTimeout(ctx, s.ConnectTimeout)
	defer cancel()
	var agreed *agreement
	if why == gone || !s.answers(ctx, old, credential) {
		var fault *Fault
		if agreed, fault = s.open(ctx, credential); fault != nil {
			s.Logger.Debug("a lost session could not be opened again", zap.String("server", s.Server), zap.Error(fault))
			if denies(fault) {
				s.outdated()
			}
		}
	}
	s.renewals.mu.Lock()
	defer s.renewals.mu.Unlock()
	if agreed != nil {
		s.agreed.Store(agreed)
		s.renewals.weak = 0
		s.moveOn()
	}
	flight.agreed = agreed
	s.renewals.flight = nil
	close(flight.done)
}

// moveOn leaves what belongs to the session before: its stream of changes, which a
// server may leave open and say nothing more on, and its list of tools. Caller holds
// renewals.mu.
func (s *streamable) moveOn() {
	for stream := range s.renewals.streams {
		stream.cancel(errReplaced)
	}
	clear(s.renewals.streams)
	if heard := s.changed.Load(); heard != nil {
		s.spawn(func(context.Context) { (*heard)(methodListChanged) })
	}
}

// bind ends a stream of changes with the session that it is opened in; unbind when
// it has ended by itself.
func (s *streamable) bind(stream *span, agreed *agreement) (unbind func()) {
	r := &s.renewals
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.agreed.Load() != agreed {
		stream.cancel(errReplaced)
	}
	if r.streams == nil {
		r.streams = make(map[*span]struct{})
	}
	r.streams[stream] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.streams, stream)
	}
}

// answers asks the server within a session whether it is there. It is, unless what
// comes back looks like its loss again.
func (s *streamable) answers(ctx context.Context, agreed *agreement, credential string) bool {
	ctx, cancel := context.WithTimeout(ctx, s.ProbeTimeout)
	defer cancel()
	_, fault := s.once(ctx, &Message{Method: methodPing, Params: []byte("{}"), Credential: credential}, agreed)
	if fault != nil {
		if suspect, _ := fault.suspects(); suspect {
			return false
		}
	}
	s.renewals.proved()
	return true
}

// open opens a session as it was opened first.
func (s *streamable) open(ctx context.Context, credential string) (*agreement, *Fault) {
	reply, fault := s.once(ctx, &Message{Method: methodInitialize, Params: s.initialize, Credential: credential}, nil)
	if fault != nil {
		return nil, fault
	}
	agreed, fault := s.agree(reply)
	if fault != nil {
		return nil, fault
	}
	if agreed.modern {
		return nil, s.malformed("speaks another revision than before", nil)
	}
	ready := &Message{Method: methodInitialized, Credential: credential}
	if fault := s.post(ctx, agreed, ready, ready.encode(0)); fault != nil && fault.Class != ClassStatus {
		return nil, fault
	}
	return agreed, nil
}

// agree reads what an initialize result settles.
func (w *wire) agree(reply Reply) (*agreement, *Fault) {
	var result struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(reply.Result, &result); err != nil {
		return nil, w.malformed("answered initialize with what is no result of it", err)
	}
	if !speaks(result.ProtocolVersion) {
		return nil, w.unsupported(result.ProtocolVersion)
	}
	agreed := &agreement{version: result.ProtocolVersion, modern: result.ProtocolVersion >= version20260728}
	if !agreed.modern && isVisible(reply.session) {
		agreed.session = reply.session
	}
	return agreed, nil
}

// isVisible says that a session id is one: visible ASCII, which is all that the
// protocol allows and a header can carry back.
func isVisible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// farewell tells an older server that its session is not needed any more.
func (s *streamable) farewell() {
	agreed := s.agreed.Load()
	if agreed == nil || agreed.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, s.CourtesyTimeout)
	defer cancel()
	x := s.begin(ctx)
	defer x.finish()
	header := agreed.streamHeader("")
	delete(header, fieldAccept)
	response, fault := x.send(http.MethodDelete, s.target, header, nil, s.credential)
	if fault != nil {
		s.Logger.Debug("the session could not be ended", zap.String("server", s.Server), zap.Error(fault))
		return
	}
	_ = response.Body.Close()
}
