package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// auditBodyLimit bounds what the audit reads of one request, in bytes.
const auditBodyLimit = 1 << 20

// audit is the demo server's own log of which token came with which request.
type audit struct {
	mu      sync.Mutex
	entries []audited
	// changed is closed and made anew with each entry.
	changed chan struct{}
}

// audited is one request as the server saw it.
type audited struct {
	// Tenant is whose token came with it; "" when none that is known did.
	Tenant string
	// Method is the JSON-RPC method; "" when the request had none.
	Method string
	// Tool and Arguments are what a tools/call is about.
	Tool, Arguments string
}

func newAudit() *audit { return &audit{changed: make(chan struct{})} }

// note writes one request down and returns the tool that it calls, "" for none.
func (a *audit) note(tenant string, r *http.Request) (string, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, auditBodyLimit))
	if err != nil {
		return "", err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var message struct {
		Method string
		Params struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	entry := audited{Tenant: tenant}
	if json.Unmarshal(body, &message) == nil {
		entry.Method = message.Method
	}
	if entry.Method == "tools/call" {
		entry.Tool, entry.Arguments = message.Params.Name, compact(message.Params.Arguments)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries = append(a.entries, entry)
	close(a.changed)
	a.changed = make(chan struct{})
	return entry.Tool, nil
}

// Entries is every request so far, oldest first.
func (a *audit) Entries() []audited {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.entries)
}

// awaitListing waits until the tenant asks for the tools once more, at most for
// a time.
func (a *audit) awaitListing(ctx context.Context, tenant string, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	before := a.listings(tenant)
	for {
		a.mu.Lock()
		changed := a.changed
		a.mu.Unlock()
		if a.listings(tenant) > before {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (a *audit) listings(tenant string) int {
	count := 0
	for _, entry := range a.Entries() {
		if entry.Tenant == tenant && entry.Method == "tools/list" {
			count++
		}
	}
	return count
}

// compact is JSON without white space, so that equal arguments are equal texts.
func compact(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}
