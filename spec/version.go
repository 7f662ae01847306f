package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/psych-systems/psych-go/document"
	"github.com/psych-systems/psych-go/failure"
)

// Version is a valid Spec with its hash. It is immutable and may be shared; the
// zero value is no version.
type Version struct {
	// spec has every default written out.
	spec      Spec
	hash      string
	canonical []byte
}

// Parse reads a Spec from YAML or JSON of at most 1 MiB. It fails with
// [failure.SpecInvalid], whose sentence begins with FILE:LINE.
func Parse(file string, data []byte) (Version, error) {
	var written Spec
	source, err := document.Decode(file, data, &written)
	if err != nil {
		return Version{}, err
	}
	found := validate(written)
	// In a program 0 stands for the default. In a file somebody meant it.
	if source.Has("$.limits.max_turns") && written.Limits.MaxTurns == 0 {
		found.Add("$.limits.max_turns", "max_turns must be from 1 to %d", maxTurns)
	}
	if source.Has("$.limits.deadline") && written.Limits.Deadline == 0 {
		found.Add("$.limits.deadline", "the deadline must be longer than 0 and at most 24h")
	}
	if err := source.First(found); err != nil {
		return Version{}, err
	}
	return version(written)
}

// New makes the Version of a Spec that a program built. It fails with
// [failure.SpecInvalid], whose sentence begins with the field's path.
func New(written Spec) (Version, error) {
	if found := validate(written); len(found) > 0 {
		return Version{}, failure.New(failure.KindSpecInvalid,
			strings.TrimPrefix(found[0].Path, "$.")+": "+found[0].Sentence, nil)
	}
	return version(written)
}

func version(written Spec) (Version, error) {
	complete := written.withDefaults()
	complete.Instructions = strings.ReplaceAll(complete.Instructions, "\r\n", "\n")
	form, err := canonical(complete)
	if err != nil {
		return Version{}, failure.New(failure.KindInternal, "the Spec has no canonical form", err)
	}
	sum := sha256.Sum256(form)
	return Version{spec: complete, hash: hex.EncodeToString(sum[:]), canonical: form}, nil
}

// Hash names the Version: the SHA-256 of its canonical form, as 64 lower-case
// hexadecimal digits.
func (v Version) Hash() string { return v.hash }

// Spec is a copy of the Spec in which every default is written out.
func (v Version) Spec() Spec { return v.spec.withDefaults() }

// Canonical is a copy of the canonical form.
func (v Version) Canonical() []byte { return slices.Clone(v.canonical) }
