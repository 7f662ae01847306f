package bench_test

import (
	"fmt"
	"testing"
	"time"
)

// measureCalls compares tools/call through a connection with the bare client, on
// the stub and on go-sdk's own server.
func measureCalls(t testing.TB, e effort) (rows []row) {
	for _, kind := range []string{kindStub, kindSDK} {
		p := newPeer(t, kind)
		h, to := newHouse(t, p), target(t, "acme", p.origin+"/small")
		h.catalogue(t, to)
		theirs, least := newBare(t, p.origin+"/small"), newFloor(t, p.origin+"/small")
		for _, callers := range []int{1, 64, 256} {
			each := max(e.calls/callers, 1)
			rate := func(took time.Duration) float64 { return float64(callers*each) / took.Seconds() }
			h.calls(t, to, callers, 2) // opens the sockets
			theirs.calls(t, callers, 2)
			least.calls(t, callers, 2)
			us, them := e.alternate(
				func() float64 { began := time.Now(); h.calls(t, to, callers, each); return rate(time.Since(began)) },
				func() float64 { return rate(theirs.calls(t, callers, each)) })
			floor, _ := e.alternate(func() float64 { return rate(least.calls(t, callers, each)) }, func() float64 { return 0 })
			if callers == 1 {
				rows = append(rows, atMost(fmt.Sprintf("latency of `tools/call`, one caller, server: %s", kind), them/us, 0.6, times).
					with("%.0f µs, bare %.0f µs, net/http alone %.0f µs", 1e6/us, 1e6/them, 1e6/floor))
				continue
			}
			rows = append(rows, atLeast(fmt.Sprintf("throughput, %d callers, server: %s", callers, kind), us/them, 2, times).
				with("%.0f calls/s, bare %.0f calls/s, net/http alone %.0f calls/s", us, them, floor))
		}
		if kind == kindStub {
			rows = append(rows, measureCallBytes(t, e, h, theirs, p)...)
		}
	}
	return rows
}

// measureCallBytes counts what a call costs in memory and on the wire.
func measureCallBytes(t testing.TB, e effort, h *house, theirs bare, p peer) []row {
	to := target(t, "acme", p.origin+"/small")
	ours, bares := e.alternate(
		func() float64 { return allocated(func() { h.calls(t, to, 1, e.calls) }) / float64(e.calls) },
		func() float64 { return allocated(func() { theirs.calls(t, 1, e.calls) }) / float64(e.calls) })
	before := p.heard(t, "")
	h.calls(t, to, 4, e.calls/4)
	requests := p.heard(t, "") - before
	return []row{
		atMost("bytes allocated a call, client side", ours/1024, 24, "KB").with("bare %.0f KB", bares/1024),
		atMost("requests on the wire per tool call", float64(requests)/float64(e.calls/4*4), 1, "exactly"),
	}
}

// measureSlowNeighbour compares 63 callers beside one call that takes 2 s with the
// same callers alone.
func measureSlowNeighbour(t testing.TB, e effort) []row {
	p := newPeer(t, kindStub)
	h, to := newHouse(t, p), target(t, "acme", p.origin+"/small")
	h.catalogue(t, to)
	each := max(e.calls/63, 1)
	h.calls(t, to, 63, 2)
	beside, alone := e.alternate(
		func() float64 {
			slow, before := make(chan error, 1), p.heard(t, "slow")
			began := time.Now()
			go func() { slow <- h.call(t, to, "slow") }()
			for p.heard(t, "slow") == before && len(slow) == 0 {
				time.Sleep(time.Millisecond) // until the slow call is at the server
			}
			took := median(h.calls(t, to, 63, each))
			if err := <-slow; err != nil || time.Since(began) < slowness {
				t.Fatalf("the slow call ended after %s: %v", time.Since(began), err)
			}
			return took.Seconds()
		},
		func() float64 { return median(h.calls(t, to, 63, each)).Seconds() })
	return []row{atMost("63 callers beside one call of 2 s, p50 against without it", beside/alone, 1.2, times).
		with("%.0f µs, alone %.0f µs", beside*1e6, alone*1e6)}
}
