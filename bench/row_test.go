package bench_test

import (
	"fmt"
	"math"
	"strconv"
)

// times is the unit of a ratio.
const times = "times"

// row is one line of the table.
type row struct {
	measure string
	value   float64
	unit    string
	bound   string
	holds   bool
	// detail is what the value was made from.
	detail string
}

func atMost(measure string, value, bound float64, unit string) row {
	return row{
		measure: measure, value: value, unit: unit, bound: "at most " + number(bound) + " " + unit,
		holds: value <= bound,
	}
}

func atLeast(measure string, value, bound float64, unit string) row {
	return row{
		measure: measure, value: value, unit: unit, bound: "at least " + number(bound) + " " + unit,
		holds: value >= bound,
	}
}

func (r row) with(format string, args ...any) row {
	r.detail = fmt.Sprintf(format, args...)
	return r
}

// String is the row as Markdown.
func (r row) String() string {
	verdict := "yes"
	if !r.holds {
		verdict = "**no**"
	}
	return fmt.Sprintf("| %s | %s %s | %s | %s | %s |", r.measure, number(r.value), r.unit, r.bound, verdict, r.detail)
}

// number is a number with two significant places behind the point where it is small.
func number(value float64) string {
	if math.Abs(value) >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64)
}
