package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// listingPatience is how long a call waits for the client to ask for a new list.
// A client may let up to a second pass between two lists.
const listingPatience = 5 * time.Second

// desk is the demo's MCP server: the order desk of a web shop, which serves
// several tenants at one URL and tells them apart by their tokens.
type desk struct {
	address string
	http    *http.Server
	audit   *audit
	// tenants is whose each token is.
	tenants map[string]string
	shops   map[string]*shop
	served  chan struct{}
}

// shop is what one tenant's token opens.
type shop struct {
	tenant string
	orders map[int]string
	server *mcp.Server
	audit  *audit
}

// openDesk serves on loopback until [desk.Close].
func openDesk(ctx context.Context) (*desk, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the demo's server cannot listen on 127.0.0.1: %w", err)
	}
	d := &desk{
		address: listener.Addr().String(), audit: newAudit(), served: make(chan struct{}),
		tenants: map[string]string{"token-of-acme": "acme", "token-of-globex": "globex"}, shops: map[string]*shop{},
	}
	d.shops["acme"] = newShop("acme", d.audit, map[int]string{
		1042: "a blue teapot, delivered; the customer says that it arrived broken",
		1043: "a red kettle, handed to the carrier on Monday",
	})
	mcp.AddTool(d.shops["acme"].server, &mcp.Tool{
		Name: "list_wholesale", Description: "List wholesale prices.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, d.shops["acme"].does("priced"))
	d.shops["globex"] = newShop("globex", d.audit, map[int]string{
		77: "a desk lamp, delivered",
	})
	protocol := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		return d.shops[d.tenantOf(r)].server
	}, nil)
	d.http = &http.Server{Handler: d.guard(protocol), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(d.served)
		_ = d.http.Serve(listener)
	}()
	return d, nil
}

// URL is where the desk is reached.
func (d *desk) URL() string { return "http://" + d.address + "/mcp" }

// Close ends the desk and every connection to it.
func (d *desk) Close() {
	_ = d.http.Close()
	<-d.served
}

func (d *desk) tenantOf(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return d.tenants[token]
}

// guard writes every request to the audit, lets in only known tokens, and lets
// calls of track_parcel break off, as a server does that dies at its work.
func (d *desk) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant := d.tenantOf(r)
		called, err := d.audit.note(tenant, r)
		switch {
		case err != nil:
			http.Error(w, "the request cannot be read", http.StatusBadRequest)
		case tenant == "":
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a token is needed", http.StatusUnauthorized)
		case called == "track_parcel":
			panic(http.ErrAbortHandler)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// orderInput is what most of the desk's tools take.
type orderInput struct {
	Order int `json:"order" jsonschema:"the number of the order"`
}

func newShop(tenant string, audit *audit, orders map[int]string) *shop {
	s := &shop{tenant: tenant, orders: orders, audit: audit}
	s.server = mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: "The order desk of a web shop.",
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
			c.TTLMs, c.CacheScope = int(time.Hour.Milliseconds()), "private"
		},
	})
	harmless, additive := &mcp.ToolAnnotations{ReadOnlyHint: true}, &mcp.ToolAnnotations{DestructiveHint: new(false)}
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "find_order", Description: "Find an order by its number.", Annotations: harmless,
	}, func(ctx context.Context, _ *mcp.CallToolRequest, in orderInput) (*mcp.CallToolResult, any, error) {
		found, known := s.orders[in.Order]
		if !known {
			return nil, nil, fmt.Errorf("there is no order %d", in.Order)
		}
		if strings.Contains(found, "broken") {
			s.openTickets(ctx, additive)
		}
		return said("order %d: %s", in.Order, found), nil, nil
	})
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "list_orders", Description: "List all orders.", Annotations: harmless,
	}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return said("%s", s.list()), nil, nil
	})
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "track_parcel", Description: "Say where an order's parcel is.", Annotations: harmless,
	}, s.does("tracked"))
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "refund_order", Description: "Pay an order's money back.", Annotations: &mcp.ToolAnnotations{},
	}, s.does("refunded"))
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "delete_order", Description: "Delete an order for good.", Annotations: &mcp.ToolAnnotations{},
	}, s.does("deleted"))
	return s
}

// does is a tool that says it did something with an order.
func (s *shop) does(what string) mcp.ToolHandlerFor[orderInput, any] {
	return func(_ context.Context, _ *mcp.CallToolRequest, in orderInput) (*mcp.CallToolResult, any, error) {
		return said("order %d was %s", in.Order, what), nil, nil
	}
}

// openTickets adds a tool, as a server does whose tools depend on what was done
// before. It goes on when its client has asked for the new list, or does not.
func (s *shop) openTickets(ctx context.Context, annotations *mcp.ToolAnnotations) {
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "open_ticket", Description: "Open a ticket about an order for a colleague.", Annotations: annotations,
	}, s.does("put on a ticket"))
	s.audit.awaitListing(ctx, s.tenant, listingPatience)
}

func (s *shop) list() string {
	var lines []string
	for order, what := range s.orders {
		lines = append(lines, fmt.Sprintf("order %d: %s", order, what))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func said(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}
