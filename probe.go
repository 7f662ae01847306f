package psych

import (
	"context"
	"net/url"
	"time"

	"github.com/psych-systems/psych-go/messages"
)

// ProbeTarget is a server to connect to.
type ProbeTarget struct {
	URL string
	// Transport is Streamable HTTP when empty.
	Transport messages.Transport
	// Credential is a name; "" for none.
	Credential string
}

// ProbeReport is what connecting to a server found.
type ProbeReport struct {
	ProtocolVersion string
	Instructions    string
	Tools           []*messages.Tool
	FetchedAt       time.Time
}

// Probe connects to a server as a Run in that scope would, and lists its tools.
func (r *Runtime) Probe(ctx context.Context, scope messages.Scope, target ProbeTarget) (ProbeReport, error) {
	if r.isClosed() {
		return ProbeReport{}, errClosed
	}
	found, err := r.targets.find(ctx, scope, hostOf(target.URL), target.URL,
		orDefault(target.Transport, messages.TransportHTTP), target.Credential)
	if err != nil {
		return ProbeReport{}, err
	}
	snapshot, err := r.catalogue(ctx, found)
	if err != nil {
		return ProbeReport{}, err
	}
	return ProbeReport{
		ProtocolVersion: snapshot.GetProtocolVersion(), Instructions: snapshot.GetInstructions(),
		Tools: snapshot.GetTools(), FetchedAt: time.UnixMilli(snapshot.GetFetchedUnixMs()),
	}, nil
}

// hostOf is what sentences call a server that no Spec names: a URL's query may
// hold what is nobody's business.
func hostOf(raw string) string {
	if parsed, err := url.Parse(raw); err == nil {
		return parsed.Host
	}
	return ""
}
