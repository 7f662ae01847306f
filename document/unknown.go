package document

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// unknown is the sentence about a field that a struct does not have.
func unknown(key, path string, into reflect.Value, fields map[string]field) string {
	sentence := fmt.Sprintf("%s has no field %q", named(path), key)
	if explainer, ok := into.Addr().Interface().(Explainer); ok {
		if why := explainer.WhyNot(key); why != "" {
			return sentence + "; " + why
		}
	}
	known := slices.Sorted(maps.Keys(fields))
	if near := nearest(key, known); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", sentence, near)
	}
	return sentence + "; its fields are " + strings.Join(known, ", ")
}

// nearest returns the known name that a mistyped one is close to, "" for none.
func nearest(typed string, known []string) string {
	const most = 2
	best, distance := "", most+1
	for _, name := range known {
		if d := edits(plain(typed), plain(name), most); d < distance && d < len(name)-1 {
			best, distance = name, d
		}
	}
	return best
}

// plain is a name without what people mix up in names: case, "-" and "_".
func plain(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
}

// edits counts the letters to insert, delete, replace or swap with their
// neighbour that turn a into b; more than most is most+1.
func edits(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return min(row[len(b)], most+1)
}
