package document_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/document"
	"github.com/psych-systems/psych-go/failure"
)

// level is a type that reads itself from a text.
type level int

func (l *level) UnmarshalText(written []byte) error {
	if string(written) != "high" {
		return errors.New("it is not high")
	}
	*l = 3
	return nil
}

type shape struct {
	Name  string            `yaml:"name"`
	Count int               `yaml:"count"`
	Share float64           `yaml:"share"`
	On    *bool             `yaml:"on"`
	Wait  time.Duration     `yaml:"wait"`
	Level level             `yaml:"level"`
	Parts []part            `yaml:"parts"`
	Tags  map[string]string `yaml:"tags"`
	Any   any               `yaml:"any"`
	Grant []string          `yaml:"grant,nonnull"`
	Unset string
}

type part struct {
	Names []string `yaml:"names"`
	Inner *part    `yaml:"inner"`
}

func (part) WhyNot(field string) string {
	if field == "color" {
		return "parts have no colors"
	}
	return ""
}

func TestEverySpellingOfOneDocumentReadsTheSame(t *testing.T) {
	want := shape{
		Name: "two\nlines\n", Count: 3, Share: 0.5, On: new(false), Wait: 5 * time.Minute, Level: 3,
		Parts: []part{{Names: []string{"a", "b"}}, {Names: []string{}}}, Tags: map[string]string{"x": "1", "y.z": "no"},
		Any: map[string]any{"n": int64(1), "b": true, "l": []any{"x", nil}, "f": 1.5, "e": 1000.0},
	}
	const block = `# A comment.
name: |
  two
  lines
count: 3 # here too
share: 0.5
on: false
wait: 5m
level: high
parts:
  - names: [a, b]
  - names: []
tags: {x: "1", y.z: no}
any:
  n: 1
  b: true
  l: [x, null]
  f: 1.5
  e: 1e3
`
	const inJSON = `{"name": "two\nlines\n", "count": 3, "share": 0.5, "on": false, "wait": "5m", "level": "high",
	"parts": [{"names": ["a", "b"], "inner": null}, {"names": []}], "tags": {"x": "1", "y.z": "no"},
	"any": {"n": 1, "b": true, "l": ["x", null], "f": 1.5, "e": 1e3}}`
	for name, written := range map[string]string{
		"yaml": block, "crlf": strings.ReplaceAll(block, "\n", "\r\n"), "cr": strings.ReplaceAll(block, "\n", "\r"),
		"bom": "\ufeff" + block, "document marks": "---\n" + block + "...\n", "json": inJSON,
		"json with tabs": strings.ReplaceAll(inJSON, " ", "\t"),
	} {
		var got shape
		if _, err := document.Decode("f.yaml", []byte(written), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", name, err, got, want)
		}
	}
}

func TestNullLeavesADefaultAlone(t *testing.T) {
	got := shape{Name: "default", Tags: map[string]string{"a": "b"}}
	source, err := document.Decode("f.yaml", []byte("{name: null, tags: ~, on: null, count: 0}"), &got)
	if err != nil || got.Name != "default" || got.Tags["a"] != "b" || got.On != nil {
		t.Fatalf("%v: got %+v", err, got)
	}
	for path, has := range map[string]bool{"$.name": false, "$.count": true, "$.share": false, "$": true} {
		if source.Has(path) != has {
			t.Errorf("Has(%s) is %v", path, !has)
		}
	}
}

func TestADocumentNeedNotBeAStruct(t *testing.T) {
	var names map[string]map[string]string
	if _, err := document.Decode("f", []byte("a: {b: c}"), &names); err != nil || names["a"]["b"] != "c" {
		t.Errorf("%v: got %v", err, names)
	}
	var items []part
	if _, err := document.Decode("f", []byte("- names: [a]"), &items); err != nil || items[0].Names[0] != "a" {
		t.Errorf("%v: got %v", err, items)
	}
	if _, err := document.Decode("f", []byte("a: b"), items); failure.KindOf(err) != failure.KindInternal {
		t.Errorf("got %v", err)
	}
}

// TestWhatIsRefusedAndWhere reads every file of testdata/refused. Its name says
// what is wrong; its sentence stands in refused.txt.
func TestWhatIsRefusedAndWhere(t *testing.T) {
	sentences := refusals(t)
	files, err := filepath.Glob("testdata/refused/*.yaml")
	if err != nil || len(files) != len(sentences) {
		t.Fatalf("%d files and %d sentences: %v", len(files), len(sentences), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		refused(t, filepath.Base(file), data, sentences[filepath.Base(file)])
	}
}

// refusals maps a file's name to its whole sentence.
func refusals(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/refused/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	sentences := map[string]string{}
	for line := range strings.Lines(string(data)) {
		file, _, _ := strings.Cut(line, ":")
		sentences[file] = strings.TrimSuffix(line, "\n")
	}
	return sentences
}

func refused(t *testing.T, file string, data []byte, want string) {
	t.Helper()
	var got shape
	source, err := document.Decode(file, data, &got)
	if _, is := errors.AsType[*failure.SpecInvalid](err); !is || source != nil || err.Error() != want {
		t.Errorf("%s\ngot  %v\nwant %s", file, err, want)
	}
}

func TestWhatNoEditorShowsIsRefused(t *testing.T) {
	var keys strings.Builder
	for range 20_001 {
		keys.WriteString("{a: 1}, ")
	}
	for _, test := range []struct{ name, written, want string }{
		{"nothing", "", "f:1: the document is empty"},
		{"bad UTF-8", "name: a\ncount: \xff\n", "f:2: the document is not UTF-8 text"},
		{"UTF-16", "\xff\xfen\x00a\x00", "f:1: the document is not UTF-8 text"},
		{"a zero byte", "name: a\x00\n", "f:1: the document has the control character U+0000"},
		{"a bell behind CR and CRLF", "name: a\r\ncount: 1\r# \a", "f:3: the document has the control character U+0007"},
		{"brackets without end", strings.Repeat("[", 1<<16), "f:1: the document is nested deeper than 32 levels"},
		{"braces without end", "any: " + strings.Repeat("{a: ", 1<<16), "f:1: the document is nested deeper than 32 levels"},
		{"dashes without end", "any:\n" + strings.Repeat("- ", 1<<16) + "x", "f:2: the document is nested deeper than 32 levels"},
		{"dashes in a bracket", "any: [" + strings.Repeat("- ", 1<<16), "f:1: the document is nested deeper than 32 levels"},
		{"many keys", "any: [" + keys.String() + "]", "f:1: the document has more than 20000 keys"},
		{"a long key", strings.Repeat("k", 257) + ": 1", "f:1: a key of the document has 257 bytes and 256 are allowed"},
		{"a long document", "name: " + strings.Repeat("x", 1<<20), "f:1: the document has 1048582 bytes and 1048576 are allowed"},
	} {
		t.Run(test.name, func(t *testing.T) { refused(t, "f", []byte(test.written), test.want) })
	}
}

func TestProblemsAreToldInTheOrderOfTheFile(t *testing.T) {
	var got shape
	source, err := document.Decode("f.yaml", []byte(`
name: x
parts:
  - names:
      - a
      - b
tags:
  k: v
  a.b[0]: w
  "say \"hi\"": x
`), &got)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"$.name":                "f.yaml:2: bad",
		"$.parts[0].names[1]":   "f.yaml:6: bad",
		"$.parts[0].none":       "f.yaml:4: bad",
		"$.parts[7]":            "f.yaml:3: bad",
		"$.parts[-1].names":     "f.yaml:3: bad",
		"$.parts[0].names":      "f.yaml:4: bad",
		"$.parts":               "f.yaml:3: bad",
		"$.tags.k.deeper":       "f.yaml:8: bad",
		`$.tags["a.b[0]"]`:      "f.yaml:9: bad",
		`$.tags["say \"hi\""]`:  "f.yaml:10: bad",
		`$.tags["unfinished`:    "f.yaml:7: bad",
		"$.none":                "f.yaml:2: bad",
		"$":                     "f.yaml:2: bad",
		"":                      "f.yaml:2: bad",
		document.Join("$", "a"): "f.yaml:2: bad",
	} {
		if err := source.Invalid(path, "bad"); err.Error() != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
	var problems document.Problems
	if err := source.First(problems); err != nil {
		t.Errorf("got %v", err)
	}
	problems.Add("$.tags.k", "the %s", "third")
	problems.Add("$.parts[0].names[0]", "the first")
	problems.Add("$.parts[0].names[0]", "the second")
	if err := source.First(problems); err.Error() != "f.yaml:5: the first" {
		t.Errorf("got %v", err)
	}
}

func TestPathsOfAnyKeyAreFoundAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "keys")
		var tree any = "leaf"
		path := "$"
		for i := len(keys) - 1; i >= 0; i-- {
			tree = map[string]any{keys[i]: tree}
		}
		for _, key := range keys {
			path = document.Join(path, key)
		}
		encoded, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		source, err := document.Decode("f", encoded, &got)
		if err != nil {
			t.Fatal(err)
		}
		if !source.Has(path) || source.Has(document.Join(path, "x")) {
			t.Fatalf("%s is not found in %s", path, encoded)
		}
	})
}

// values are what JSON can say, up to a depth.
func values(depth int) *rapid.Generator[any] {
	texts := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a \"'\\/\n\r\t:#-[]{},&*!|>%@`?~<=0.1e\u00e9\u0085\u2028\ufeff\U0001F600"))))
	return rapid.Custom(func(t *rapid.T) any {
		most := 4
		if depth == 0 {
			most = 2
		}
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return texts.Draw(t, "text")
		case 1:
			return rapid.SampledFrom([]any{true, false, nil}).Draw(t, "constant")
		case 2:
			return rapid.OneOf(rapid.Float64Range(-1e9, 1e9), rapid.Map(rapid.Int32(), func(i int32) float64 { return float64(i) })).Draw(t, "number")
		case 3:
			return rapid.SliceOfN(values(depth-1), 1, 4).Draw(t, "list")
		default:
			return rapid.MapOfN(texts, values(depth-1), 1, 4).Draw(t, "mapping")
		}
	})
}

// asJSON turns whole numbers into what encoding/json makes of them.
func asJSON(value any) any {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case []any:
		for i := range value {
			value[i] = asJSON(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = asJSON(value[key])
		}
	}
	return value
}

func TestJSONReadsAsEncodingJSONReadsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		indent := rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "indent")
		encoded, err := json.MarshalIndent(values(3).Draw(t, "value"), "", indent)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(encoded, &want); err != nil {
			t.Fatal(err)
		}
		if _, err := document.Decode("f", encoded, &got); err != nil || !reflect.DeepEqual(asJSON(got), want) {
			t.Fatalf("%s: %v\ngot  %#v\nwant %#v", encoded, err, got, want)
		}
	})
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/refused/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("name: x\nparts: [{names: [a]}]\nany: {a: [1, {b: c}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got shape
		source, err := document.Decode("f.yaml", data, &got)
		switch {
		case err == nil:
			_ = source.Invalid("$.parts[0].names[0]", "bad")
		case failure.KindOf(err) != failure.KindSpecInvalid, strings.Contains(err.Error(), "\n"), !strings.HasPrefix(err.Error(), "f.yaml:"):
			t.Fatalf("got %v", err)
		}
	})
}
