package mcpwire

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"strconv"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/messages"
)

// mostPages bounds how far a listing is followed; a server that goes on is lost
// in a circle of its own.
const mostPages = 1000

// ListTools fetches the server's tools, all pages in order. Where the raw tools
// are those of previousEtag, nothing is parsed and the listing says unchanged. A
// tool that cannot be used is logged and left out; its neighbours stay. The pages of
// a listing share one response ceiling.
//
// A list that has a tool in two pages in the same words has probably moved between
// them, and is fetched again a few times; a server that stays with it lists the tool
// twice.
//
// It fails with failure.McpProtocolError, failure.McpResponseTooLarge,
// failure.McpServerUnreachable or as Options.Authorize does.
func (s *Session) ListTools(ctx context.Context, credential, previousEtag string) (*messages.Listing, error) {
	for attempt := 1; ; attempt++ {
		listing, moved, fault := s.list(ctx, credential, previousEtag)
		if fault != nil {
			return nil, fault
		}
		if !moved || attempt == mostFetches {
			return listing, nil
		}
	}
}

// mostFetches is how often a list that moves is fetched for one listing.
const mostFetches = 3

// list fetches the tools once; moved says that the list moved under the fetch.
func (s *Session) list(ctx context.Context, credential, previousEtag string) (listing *messages.Listing, moved bool, fault *Fault) {
	l, fault := s.fetch(ctx, credential)
	if fault != nil {
		return nil, false, fault
	}
	listing = &messages.Listing{Etag: l.etag(), CacheScope: l.cacheScope, TtlMs: l.ttl}
	listing.Unchanged = listing.Etag == previousEtag
	if listing.Unchanged && s.bound(listing.Etag, l) {
		return listing, false, nil
	}
	read, fault := s.readTools(listing.Etag, l)
	if fault != nil {
		return nil, false, fault
	}
	if !listing.Unchanged {
		listing.Tools = read.tools
	}
	return listing, read.moved, nil
}

// bound says that the table of header arguments is the one of these tools, without
// reading them.
func (s *Session) bound(etag string, l *listing) bool {
	if s.params.made(etag) || s.share(etag, l) != nil {
		return true
	}
	for _, page := range l.pages {
		if s.modern && bytes.Contains(page, annotationName) {
			return false
		}
	}
	s.params.set(etag, nil, nil)
	return true
}

// share uses the copy of a public list that another session has; nil when there
// is none.
func (s *Session) share(etag string, l *listing) *toolList {
	if l.cacheScope != scopePublic {
		return nil
	}
	list := s.options.Lists.find(listName{etag, s.modern})
	if list != nil {
		s.params.set(etag, list.bindings, list)
	}
	return list
}

// listing is what a fetch brought, undecoded.
type listing struct {
	pages      [][]byte // the raw tools arrays
	digest     hash.Hash
	cacheScope string
	ttl        *int64
	size       int64
}

func newListing() *listing { return &listing{digest: sha256.New()} }

func (l *listing) etag() string { return hex.EncodeToString(l.digest.Sum(nil)) }

// fetch follows the pages to their end.
func (s *Session) fetch(ctx context.Context, credential string) (*listing, *Fault) {
	l := newListing()
	seen := make(map[string]bool)
	limit := s.options.ceiling()
	for cursor := []byte(nil); ; {
		reply, fault := s.exchanger.Exchange(ctx, &Message{
			Method: methodListTools, Params: s.listParams(cursor), Credential: credential,
		})
		if fault != nil {
			if fault.Server != nil && fault.Server.Code == codeMethodNotFound && !s.tools {
				return l, nil
			}
			return nil, fault
		}
		next, fault := l.add(s.options, reply.Result)
		if fault != nil {
			return nil, fault
		}
		if l.size > limit {
			return nil, s.options.tooLarge(limit, nil)
		}
		if absent(next) {
			return l, nil
		}
		if seen[string(next)] || len(seen) >= mostPages {
			return nil, s.options.malformed("lists its tools in pages without an end", nil)
		}
		seen[string(next)] = true
		cursor = next
	}
}

func (s *Session) listParams(cursor []byte) []byte {
	if s.meta == nil && cursor == nil {
		return nil
	}
	b := make([]byte, 0, len(`{"_meta":,"cursor":}`)+len(s.meta)+len(cursor))
	b = append(b, '{')
	if s.meta != nil {
		b = append(append(b, `"_meta":`...), s.meta...)
	}
	if cursor != nil {
		if s.meta != nil {
			b = append(b, ',')
		}
		b = append(append(b, `"cursor":`...), cursor...)
	}
	return append(b, '}')
}

// add takes in a page and returns the raw cursor of the next one.
func (l *listing) add(o *Options, result []byte) (next []byte, fault *Fault) {
	var tools, ttl, scope []byte
	err := eachMember(result, func(name, value []byte) {
		switch string(name) {
		case "tools":
			tools = value
		case "nextCursor":
			next = value
		case "ttlMs":
			ttl = value
		case "cacheScope":
			scope = value
		}
	})
	if err != nil || firstByte(tools) != '[' && !absent(tools) {
		return nil, o.malformed("lists its tools in a form that is no list", err)
	}
	if !absent(next) {
		if cursor, ok := textOf(next); !ok {
			return nil, o.malformed("lists its tools with a cursor that is no text", nil)
		} else if cursor == "" {
			next = nil // an end, in the words of some servers
		}
	}
	first := len(l.pages) == 0
	l.cache(first, ttl, scope)
	l.size += int64(len(result))
	if !absent(tools) {
		l.pages = append(l.pages, tools)
		_, _ = l.digest.Write(tools)
	}
	return next, nil
}

// What a server says of who may be shown its answer; anything else says nothing.
const (
	scopePublic  = "public"
	scopePrivate = "private"
)

// longestTTL is more than any hint is worth, in milliseconds; what is beyond it,
// and beyond what a number holds, is this.
const longestTTL = 1 << 50

// milliseconds reads a hint, which some servers write with a fraction.
func milliseconds(text []byte) (ms int64, isNumber bool) {
	if len(text) == 0 || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return 0, false
	}
	number, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return int64(max(-longestTTL, min(number, longestTTL))), true
}

// cache joins the caching hints of the pages: the list is fresh as long as its
// most short-lived page, and as private as its most private one.
func (l *listing) cache(first bool, ttl, scope []byte) {
	if ms, isNumber := milliseconds(ttl); isNumber {
		ms = max(ms, 0)
		if l.ttl == nil || ms < *l.ttl {
			l.ttl = &ms
		}
	}
	text, _ := textOf(scope)
	switch {
	case text == scopePrivate || l.cacheScope == scopePrivate:
		l.cacheScope = scopePrivate
	case text == scopePublic && (first || l.cacheScope == scopePublic):
		l.cacheScope = scopePublic
	default:
		l.cacheScope = ""
	}
}

// readTools returns the tools of a fetch and remembers which arguments go into
// headers. Only what no other session has read is parsed.
func (s *Session) readTools(etag string, l *listing) (*toolList, *Fault) {
	if shared := s.share(etag, l); shared != nil {
		return shared, nil
	}
	list, fault := s.parse(l.pages)
	if fault != nil {
		return nil, fault
	}
	if l.cacheScope == scopePublic {
		list = s.options.Lists.join(listName{etag, s.modern}, list)
		s.params.set(etag, list.bindings, list)
	} else {
		s.params.set(etag, list.bindings, nil)
	}
	return list, nil
}

func (s *Session) parse(pages [][]byte) (*toolList, *Fault) {
	list := &toolList{bindings: make(map[string][]paramBinding)}
	listed := make(map[[sha256.Size]byte]int)
	for number, page := range pages {
		if !json.Valid(page) {
			return nil, s.options.malformed("lists its tools in what is not JSON", nil)
		}
		err := eachElement(page, func(raw []byte) {
			words := sha256.Sum256(raw)
			before, twice := listed[words]
			list.moved = list.moved || twice && before != number
			listed[words] = number
			tool, why := readTool(raw)
			var bound []paramBinding
			if why == nil && s.modern {
				bound, why = bind(tool.GetInputSchema())
			}
			if why != nil {
				s.options.Logger.Warn("a tool cannot be used and is left out",
					zap.String("server", s.options.Server), zap.String("tool", excerpt(tool.GetName())), zap.Error(why))
				return
			}
			if len(bound) > 0 {
				list.bindings[tool.GetName()] = bound
			}
			list.tools = append(list.tools, tool)
		})
		if err != nil {
			return nil, s.options.malformed("lists its tools in what is not JSON", err)
		}
	}
	compact(list.tools)
	return list, nil
}

// compact moves the schemas out of the pages, so that a listing does not keep
// alive what it does not show: output schemas, icons, the pages themselves.
func compact(tools []*messages.Tool) {
	size := 0
	for _, tool := range tools {
		size += len(tool.GetInputSchema())
	}
	room := make([]byte, 0, size)
	for _, tool := range tools {
		start := len(room)
		room = append(room, tool.GetInputSchema()...)
		tool.InputSchema = room[start:len(room):len(room)]
	}
}

// rebind fetches the list once more for its table of header arguments alone.
func (s *Session) rebind(ctx context.Context, credential string) *Fault {
	l, fault := s.fetch(ctx, credential)
	if fault != nil {
		return fault
	}
	if etag := l.etag(); !s.bound(etag, l) {
		_, fault = s.readTools(etag, l)
	}
	return fault
}
