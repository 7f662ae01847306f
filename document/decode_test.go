package document_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/document"
	"github.com/psych-systems/psych-go/failure"
)

// level is a type that reads itself from a text.
type level int

func (l *level) UnmarshalText(text []byte) error {
	if string(text) != "high" {
		return errors.New("it is not high")
	}
	*l = 3
	return nil
}

type shape struct {
	Name  string            `yaml:"name"`
	Count int               `yaml:"count"`
	On    *bool             `yaml:"on"`
	Wait  time.Duration     `yaml:"wait"`
	Level level             `yaml:"level"`
	Parts []part            `yaml:"parts"`
	Tags  map[string]string `yaml:"tags"`
	Any   map[string]any    `yaml:"any"`
}

type part struct {
	Names []string `yaml:"names"`
}

func TestWhatIsRead(t *testing.T) {
	for name, text := range map[string]string{
		"yaml": "name: |\n  two\n  lines\ncount: 3\non: false\nwait: 5m\nlevel: high\nparts:\n  - names: [a, b]\n  - names: []\ntags: {x: \"1\"}\nany: {n: 1, b: true, l: [x], f: 1.5}\n",
		"json": `{"name": "two\nlines\n", "count": 3, "on": false, "wait": "5m", "level": "high", "parts": [{"names": ["a", "b"]}, {"names": []}], "tags": {"x": "1"}, "any": {"n": 1, "b": true, "l": ["x"], "f": 1.5}}`,
		"crlf": "name: |\r\n  two\r\n  lines\r\ncount: 3\r\non: false\r\nwait: 5m\r\nlevel: high\r\nparts:\r\n  - names: [a, b]\r\n  - names: []\r\ntags: {x: \"1\"}\r\nany: {n: 1, b: true, l: [x], f: 1.5}\r\n",
		"bom":  "\ufeffname: |\n  two\n  lines\ncount: 3\non: false\nwait: 5m\nlevel: high\nparts:\n  - names: [a, b]\n  - names: []\ntags: {x: '1'}\nany: {n: 1, b: true, l: [x], f: 1.5}\n",
	} {
		var got shape
		if _, err := document.Decode("f.yaml", []byte(text), &got); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Name != "two\nlines\n" || got.Count != 3 || got.On == nil || *got.On || got.Wait != 5*time.Minute || got.Level != 3 ||
			len(got.Parts) != 2 || got.Parts[0].Names[1] != "b" || got.Parts[1].Names == nil || got.Tags["x"] != "1" ||
			got.Any["b"] != true || got.Any["f"] != 1.5 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestWhatIsRefusedAndWhere(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "f.yaml:1: the document is empty"},
		{"only a comment", "# nothing\n", "f.yaml:1: the document is empty"},
		{"a list", "- a\n", "f.yaml:1: the document must be a mapping, and is a list"},
		{"unknown field", "name: x\nconut: 3\n", `f.yaml:2: the document has no field "conut"; its fields are any, count, level, name, on, parts, tags, wait`},
		{"unknown field inside", "parts:\n  - names: [a]\n    color: red\n", `f.yaml:3: parts[0] has no field "color"; its fields are names`},
		{"a key twice", "name: a\ncount: 1\nname: b\n", `f.yaml:3: "name" stands twice in the document, first in line 1`},
		{"a number as text", "name: 12\n", "f.yaml:1: name must be a text, and is a whole number"},
		{"a bool as text", "name: yes\ncount: true\n", "f.yaml:2: count must be a whole number, and is true or false"},
		{"a text as number", "count: \"3\"\n", "f.yaml:1: count must be a whole number, and is a text"},
		{"a fraction", "count: 1.5\n", "f.yaml:1: count must be a whole number, and is a number"},
		{"too large", "count: 99999999999999999999\n", "f.yaml:1: count must be a whole number"},
		{"null for a text", "name:\ncount: 1\n", "f.yaml:1: name must be a text, and is empty"},
		{"a bad duration", "wait: soon\n", `f.yaml:1: wait must be a duration such as "90s" or "10m", and is "soon"`},
		{"a number as duration", "wait: 5\n", `f.yaml:1: wait must be a duration such as "90s" or "10m", and is a whole number`},
		{"a bad text", "level: low\n", `f.yaml:1: level "low" cannot be used: it is not high`},
		{"a mapping for a list", "parts: {names: a}\n", "f.yaml:1: parts must be a list, and is a mapping"},
		{"an alias", "name: &a x\ntags: {b: *a}\n", "f.yaml:1: name uses an anchor, an alias or a tag"},
		{"a merge key", "tags:\n  <<: {a: b}\n", "f.yaml:2: tags uses a merge key"},
		{"two documents", "name: a\n---\nname: b\n", "f.yaml:3: a second document begins here"},
		{"bad UTF-8", "name: a\ncount: \xff\n", "f.yaml:2: the document is not UTF-8 text"},
		{"a zero byte", "name: a\x00\n", "f.yaml:1: the document is not UTF-8 text"},
		{"an open bracket", "name: a\nparts: [\n", "the document cannot be read: "},
		{"too deep", "any: " + strings.Repeat("{a: ", 40) + "1" + strings.Repeat("}", 40), "f.yaml:1: a is nested deeper than 32 levels"},
		{"too long", "name: " + strings.Repeat("x", 1<<20), "f.yaml:1: the document has 1048582 bytes and 1048576 are allowed"},
	} {
		var got shape
		_, err := document.Decode("f.yaml", []byte(test.text), &got)
		if failure.KindOf(err) != failure.KindSpecInvalid || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v\nwant %s", test.name, err, test.want)
		}
	}
}

func TestInvalidFindsTheNearestPlace(t *testing.T) {
	var got shape
	source, err := document.Decode("f.yaml", []byte("name: x\nparts:\n  - names:\n      - a\n      - b\ntags:\n  k: v\n"), &got)
	if err != nil {
		t.Fatal(err)
	}
	for path, line := range map[string]string{
		"$.name": "f.yaml:1: bad", "$.parts[0].names[1]": "f.yaml:5: bad", "$.parts[0].none": "f.yaml:3: bad",
		"$.parts[7]": "f.yaml:3: bad", "$.tags.k": "f.yaml:7: bad", "$.none": "f.yaml:1: bad", "$": "f.yaml:1: bad",
	} {
		if err := source.Invalid(path, "bad"); err.Error() != line {
			t.Errorf("%s: got %v, want %s", path, err, line)
		}
	}
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add([]byte("name: x\nparts: [{names: [a]}]\nany: {a: [1, {b: c}]}"))
	f.Add([]byte("? a\n: b"))
	f.Add([]byte("<<: *x"))
	f.Add([]byte("a: !!binary x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got shape
		source, err := document.Decode("f.yaml", data, &got)
		switch {
		case err == nil:
			_ = source.Invalid("$.parts[0].names[0]", "bad")
		case failure.KindOf(err) != failure.KindSpecInvalid, strings.Contains(err.Error(), "\n"):
			t.Fatalf("got %v", err)
		}
	})
}
