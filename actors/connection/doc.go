// Package connection promises that all calls of one pool key, and no others, go
// through one actor, that a slow call delays nobody, and that each call is
// answered exactly once.
//
// The actor owns the key's sessions with its server: the one that all Runs
// share, and one more for each Run that wants its own. Each session is a slot
// with a catalog as its child.
//
// # States of a slot
//
//	idle         no session, and nobody waits for one
//	connecting   one attempt is under way; askers wait
//	ready        there is a session
//	backing-off  the last attempt failed; askers get its reason at once
//	closed       the slot was given up
//
// # Messages in
//
// messages.GetCatalogue, messages.CallTool, messages.CancelCall and
// messages.ReleaseSession, routed by the pool with their askers;
// messages.CataloguePublished and messages.CatalogueFailed from its catalogs. A
// message whose key is not the actor's own is refused.
//
// # Messages out
//
// messages.CallDone to askers; messages.ConnectionStatus and
// messages.ConnectionIdle to the pool; messages.GetCatalogue with its asker,
// messages.SessionOpened, messages.SessionClosed and messages.CatalogueWanted to
// its catalogs.
//
// # Admission
//
// Calls run concurrently up to a limit; beyond it they wait, up to a second
// limit, each with its own deadline; beyond that they get failure.Busy. The
// breaker opens on transport failures in a row only, of calls and of listings:
// while it is open, callers get the reason at once, and one of them may probe now
// and then.
//
// # Outcomes
//
// A call that was sent and not answered is failure.OutcomeUnknown, except one whose
// asker said that a repetition is harmless: that is issued once more. A call whose
// credential was rotated is answered as stale; the connection then has itself
// closed, because nothing can use its key any more.
//
// # What is lost on restart
//
// The sessions. Calls in flight are settled: a call that had been handed to the
// session is unknown, because it may have run; one that waited was not sent.
package connection
