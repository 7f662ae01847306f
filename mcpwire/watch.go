package mcpwire

import (
	"context"
	"net/http"
)

// Watch listens for changes of the server's tools, on one stream, until it ends.
// opened is called when the server has opened it, changed for each notification;
// what happened before opened is unknown, so the tools are listed again then.
// changed may be called from other goroutines, and after Watch has returned, until
// Close: servers before 2026-07-28 may tell of a change with the answer to a call.
//
// again says that it is worth listening again, after a pause; false is for a
// server that offers nothing to listen to. err is nil when the server ended the
// stream in order, else a [Fault].
func (s *Session) Watch(ctx context.Context, credential string, opened, changed func()) (again bool, err error) {
	if !s.listChanged {
		return false, nil
	}
	m := &Message{Credential: credential}
	if s.modern {
		m.Method, m.Params = methodListen, s.listenParams()
	}
	declined := false
	begun := func() {
		s.watched.Store(true)
		opened()
	}
	fault := s.exchanger.Listen(ctx, m, Listener{
		Opened: func() {
			if !s.modern {
				begun()
			}
		},
		Notified: func(method string, params []byte) bool {
			switch {
			case method == methodListChanged:
				changed()
			case method == methodAcknowledged && s.modern:
				if declined = !grants(params); declined {
					return false
				}
				begun()
			case method == methodCancelled && s.modern:
				return false // the server's word that nothing more will come
			}
			return true
		},
	})
	if fault == nil {
		return !declined, nil
	}
	return s.offersMore(fault), fault
}

func (s *Session) listenParams() []byte {
	b := append([]byte(`{"_meta":`), s.meta...)
	return append(b, `,"notifications":{"toolsListChanged":true}}`...)
}

// grants reads an acknowledgement: whether changes of tools are among what the
// server will tell.
func grants(params []byte) bool {
	granted := false
	_ = eachMember(params, func(name, value []byte) {
		if string(name) == "notifications" {
			_ = eachMember(value, func(name, value []byte) {
				granted = granted || string(name) == "toolsListChanged" && string(value) == "true"
			})
		}
	})
	return granted
}

// offersMore says whether a stream that failed is worth another attempt. A server
// that has opened one before is asked again after nearly everything.
func (s *Session) offersMore(fault *Fault) bool {
	switch fault.Status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return false
	case http.StatusBadRequest, http.StatusNotFound, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return s.watched.Load()
	}
	switch fault.Class {
	case ClassMalformed:
		return false // 202, a page, a reply: nothing to listen to
	case ClassRefused:
		return !fault.aboutRequest() || fault.Server.Code == codeInternal
	}
	return true
}
