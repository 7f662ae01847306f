package bench_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
)

// measureKeys divides what further pool keys on one large server hold.
func measureKeys(t testing.TB, e effort) (rows []row) {
	p := newPeer(t, kindStub)
	for _, scope := range []struct {
		path, name string
		bound      float64
	}{
		{"/public", "heap per further pool key, 351 tools, `cacheScope` public", 250},
		{"/private", "heap per further pool key, 351 tools, `cacheScope` private", 2500},
	} {
		h := newHouse(t, p)
		if n := len(h.catalogue(t, target(t, "first", p.origin+scope.path)).GetTools()); n != largeCatalogue {
			t.Fatalf("the server lists %d tools", n)
		}
		before := live()
		for i := range e.keys {
			h.catalogue(t, target(t, fmt.Sprintf("tenant-%d", i), p.origin+scope.path))
		}
		each := (live() - before) / float64(e.keys)
		rows = append(rows, atMost(scope.name, each/1000, scope.bound, "kB"))
		runtime.KeepAlive(h)
	}
	return rows
}

// measureIdle divides what idle connections hold whose watchers are open.
func measureIdle(t testing.TB, e effort) (rows []row) {
	for _, kind := range []string{kindStub, kindTLS} {
		p := newPeer(t, kind)
		h := newHouse(t, p)
		h.catalogue(t, target(t, "first", p.origin+"/small"))
		before, open := live(), descriptors(t)
		for i := range e.idle {
			h.catalogue(t, target(t, fmt.Sprintf("tenant-%d", i), p.origin+"/small"))
		}
		for p.heard(t, "subscriptions/listen") < e.idle+1 {
			time.Sleep(10 * time.Millisecond)
		}
		each, opened := (live()-before)/float64(e.idle), descriptors(t)-open
		name := "over HTTP/1.1"
		if kind == kindTLS {
			name = "over HTTP/2"
		}
		rows = append(rows, atMost(fmt.Sprintf("idle connection with its watcher open, %d of them, %s", e.idle, name), each/1024, 60, "KB").
			with("%.2f descriptors each", float64(opened)/float64(e.idle)))
		if kind == kindTLS {
			// A server lets some hundreds of streams share a socket.
			rows = append(rows, atMost("descriptors per idle connection where HTTP/2 is offered", float64(opened)/float64(e.idle), 0.01, "each"))
		}
	}
	return rows
}

func descriptors(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("NOT MEASURED: descriptors are counted where /proc is: %v", err)
	}
	return len(open)
}

// measureFlood watches the memory while a server sends without end.
func measureFlood(t testing.TB, _ effort) []row {
	p := newPeer(t, kindStub)
	h, to := newHouse(t, p), target(t, "acme", p.origin+"/small")
	h.catalogue(t, to)
	worst, most := "", 0.0
	for _, name := range slices.Sorted(slices.Values(floodNames())) {
		debug.FreeOSMemory()
		before := held()
		stop, peak := make(chan struct{}), make(chan float64)
		go func() {
			most := 0.0
			for {
				select {
				case <-stop:
					peak <- most
					return
				default:
					most = max(most, held())
					time.Sleep(200 * time.Microsecond)
				}
			}
		}()
		err := h.call(t, to, name)
		close(stop)
		reached := <-peak - before
		if kind := failure.KindOf(err); kind != failure.KindMcpResponseTooLarge && name != "endless error" {
			t.Fatalf("%s: %v", name, err)
		}
		if reached > most {
			worst, most = name, reached
		}
	}
	return []row{atMost("peak memory over the ceiling while a server sends an endless body",
		(most-egress.DefaultCeiling)/(1<<20), 8, "MB").with("worst: %s", worst)}
}

// held is the memory that the process has from the system and not given back.
func held() float64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return float64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
