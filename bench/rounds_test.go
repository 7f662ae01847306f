package bench_test

import (
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// effort is how much is measured.
type effort struct {
	// rounds take turns between the two sides.
	rounds int
	// calls is how many a side makes in a round, all callers together.
	calls int
	// keys is how many connections memory is divided by, and idle how many idle ones
	// there are.
	keys, idle int
	// turns is how many turns a measured Run has.
	turns int
}

var (
	full  = effort{rounds: 9, calls: 4000, keys: 20, idle: 2000, turns: 200}
	short = effort{rounds: 1, calls: 64, keys: 2, idle: 8, turns: 4}
)

func median[T time.Duration | float64 | int64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// alternate measures two sides in turns, each after a collection of all garbage, and
// returns the medians. The side that begins changes from round to round.
func (e effort) alternate(ours, theirs func() float64) (us, them float64) {
	var first, second []float64
	measure := func(side func() float64, into *[]float64) {
		runtime.GC()
		*into = append(*into, side())
	}
	for round := range e.rounds {
		if round%2 == 0 {
			measure(ours, &first)
			measure(theirs, &second)
		} else {
			measure(theirs, &second)
			measure(ours, &first)
		}
	}
	return median(first), median(second)
}

// allocated is how many bytes work allocates.
func allocated(work func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

// live is the heap and the stacks in use after a collection, in bytes.
func live() float64 {
	runtime.GC()
	runtime.GC() // what the first one finalized
	debug.FreeOSMemory()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return float64(now.HeapAlloc + now.StackInuse)
}
