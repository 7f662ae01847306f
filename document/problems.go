package document

import "fmt"

// Problem is something wrong with what a document says.
type Problem struct {
	// Path is where it is, such as $.servers[0].name.
	Path string
	// Sentence is what it is.
	Sentence string
}

// Problems are found in any order. The zero value is none.
type Problems []Problem

// Add adds what is wrong at a path.
func (p *Problems) Add(path, format string, args ...any) {
	*p = append(*p, Problem{Path: path, Sentence: fmt.Sprintf(format, args...)})
}

// First returns the failure of the problem that stands first in the document,
// and of several in one place the one that was added first; nil when there are
// none. One report at a time keeps a mistake from being told with its
// consequences.
func (s *Source) First(problems Problems) error {
	if len(problems) == 0 {
		return nil
	}
	first, at := problems[0], s.find(problems[0].Path).at
	for _, problem := range problems[1:] {
		if here := s.find(problem.Path).at; here.before(at) {
			first, at = problem, here
		}
	}
	return s.Invalid(first.Path, "%s", first.Sentence)
}
