package narrow

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Entry is one tool of a [Table].
type Entry[T any] struct {
	// Public is its public name.
	Public string
	// Owner says whose tool it is, for people.
	Owner string
	// Raw is the owner's own name for it.
	Raw string
	// Payload is what the table routes to.
	Payload T
}

// Table routes public names. A name is looked up, never parsed.
type Table[T any] struct {
	order  []Entry[T]
	byName map[string]int
}

// Conflict is one public name for two tools.
type Conflict struct {
	Name string
	// First and Second name the tools and their owners.
	First, Second string
}

func (c *Conflict) Error() string {
	return fmt.Sprintf("the public name %q stands for two tools: %s and %s", c.Name, c.First, c.Second)
}

// NewTable makes a table that keeps the entries' order. It fails with
// [*Conflict] when two entries share a public name.
func NewTable[T any](entries []Entry[T]) (*Table[T], error) {
	table := &Table[T]{order: entries, byName: make(map[string]int, len(entries))}
	for i, entry := range entries {
		if first, taken := table.byName[entry.Public]; taken {
			return nil, &Conflict{Name: entry.Public, First: described(entries[first]), Second: described(entry)}
		}
		table.byName[entry.Public] = i
	}
	return table, nil
}

func described[T any](entry Entry[T]) string {
	return fmt.Sprintf("%q of %s", entry.Raw, entry.Owner)
}

// Lookup finds what a public name routes to.
func (t *Table[T]) Lookup(public string) (T, bool) {
	i, known := t.byName[public]
	if !known {
		var none T
		return none, false
	}
	return t.order[i].Payload, true
}

// All yields every payload in order.
func (t *Table[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for i, entry := range t.order {
			if !yield(i, entry.Payload) {
				return
			}
		}
	}
}

// Near returns up to limit public names that look like a name, the closest
// first; none when nothing is close.
func (t *Table[T]) Near(name string, limit int) []string {
	if len(name) > 2*MaxName {
		return nil
	}
	type candidate struct {
		public   string
		distance int
	}
	var found []candidate
	wanted, bound := strings.ToLower(name), max(2, len(name)/3)
	for _, entry := range t.order {
		if apart := len(name) - len(entry.Public); apart > bound || -apart > bound {
			continue
		}
		distance := editDistance(wanted, strings.ToLower(entry.Public))
		if distance <= bound {
			found = append(found, candidate{entry.Public, distance})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.public, b.public))
	})
	var names []string
	for _, near := range found[:min(limit, len(found))] {
		names = append(names, near.public)
	}
	return names
}

// editDistance is the Levenshtein distance of two short texts, in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
