package bench_test

import "testing"

// TestWhatIsExactHolds checks the rows of the table that no machine changes.
func TestWhatIsExactHolds(t *testing.T) {
	p := newPeer(t, kindStub)
	h, to := newHouse(t, p), target(t, "acme", p.origin+"/small")
	h.catalogue(t, to)
	const callers, each = 8, 16
	before := p.heard(t, "")
	h.calls(t, to, callers, each)
	if n := p.heard(t, "") - before; n != callers*each {
		t.Errorf("%d calls took %d requests", callers*each, n)
	}
	if n := firstRequest(t, p.origin+"/public", false); n >= 1_900 {
		t.Errorf("with 351 tools deferred, the first request to the model has %d bytes", n)
	}
	if n := firstRequest(t, p.origin+"/public", true); n <= 2_000_000 {
		t.Errorf("with 351 tools shown, the first request to the model has %d bytes", n)
	}
}
