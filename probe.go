package psych

import (
	"context"
	"net/url"
	"time"

	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/spec"
)

// ProbeTarget is a server to connect to.
type ProbeTarget struct {
	URL string
	// Transport is Streamable HTTP when empty.
	Transport messages.Transport
	// Credential is a name; "" for none.
	Credential string
	// OAuth is the server's grant, as a Spec has it; nil for none.
	OAuth *spec.OAuth
}

// ProbeReport is what connecting to a server found.
type ProbeReport struct {
	ProtocolVersion string
	Instructions    string
	Tools           []*messages.Tool
	FetchedAt       time.Time
	// Grant is the OAuth grant that was used; nil without one.
	Grant *Grant
}

// Probe connects to a server as a Run in that scope would, and lists its tools.
func (r *Runtime) Probe(ctx context.Context, scope messages.Scope, target ProbeTarget) (ProbeReport, error) {
	if r.isClosed() {
		return ProbeReport{}, errClosed
	}
	server := spec.Server{
		Name: hostOf(target.URL), URL: target.URL, Transport: orDefault(target.Transport, messages.TransportHTTP),
		Credential: target.Credential, OAuth: target.OAuth,
	}
	var found *messages.Target
	snapshot, err := r.catalogueAt(ctx, func() (*messages.Target, error) {
		var err error
		found, err = r.targets.find(ctx, scope, server)
		return found, err
	})
	report := ProbeReport{
		ProtocolVersion: snapshot.GetProtocolVersion(), Instructions: snapshot.GetInstructions(),
		Tools: snapshot.GetTools(), FetchedAt: time.UnixMilli(snapshot.GetFetchedUnixMs()),
	}
	if target.OAuth != nil && found != nil {
		report.Grant = r.grantAt(ctx, found)
	}
	return report, err
}

// grantAt is the grant of a key as its connection tells of it; nil when it does not.
func (r *Runtime) grantAt(ctx context.Context, target *messages.Target) *Grant {
	key, err := messages.PoolKeyOf(target.GetKey())
	if err != nil {
		return nil
	}
	connections, _ := r.Connections(ctx, key.Scope().Tenant)
	for _, one := range connections {
		if one.ID == key.Digest() {
			return one.Grant
		}
	}
	return nil
}

// hostOf is what sentences call a server that no Spec names: a URL's query may
// hold what is nobody's business.
func hostOf(raw string) string {
	if parsed, err := url.Parse(raw); err == nil {
		return parsed.Host
	}
	return ""
}
