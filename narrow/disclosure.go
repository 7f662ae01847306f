package narrow

// Defer decides whether a server's tools are disclosed on demand instead of
// whole. A wish for preloading decides; without one (nil), a server whose tools
// have more characters than the budget is deferred. Characters, not tokens: a
// token count needs a tokenizer, and every provider has another one.
func Defer(preload *bool, chars, budget int) bool {
	if preload != nil {
		return !*preload
	}
	return chars > budget
}
