package memory_test

import (
	"testing"

	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/tokenstore"
	"github.com/psych-systems/psych-go/tokenstore/memory"
	"github.com/psych-systems/psych-go/tokenstore/storetest"
)

func TestAStoreInMemoryKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) tokenstore.Store { return memory.New() })
}

func TestASealedStoreInMemoryKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) tokenstore.Store {
		sealed, err := tokenstore.Seal(memory.New(), secret.NewText("a secret of the tests"))
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	})
}
