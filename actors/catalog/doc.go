// Package catalog promises that a tool list is never older than its server lets
// it be, and never staler than the last change that its server announced.
//
// The actor is a child of a connection. It owns the cache of one session's tool
// list, its time to live and the watcher of its changes.
//
// # States
//
//	detached    the connection has no session; nothing can be fetched
//	empty       there is a session, and no list
//	fresh       the list is handed out while its time lasts
//	refreshing  as fresh, while one fetch is in flight
//	stale       the list is fetched again before it is handed out
//	fetching    there is no list that may be handed out, and one fetch is in flight
//
// # Messages in
//
// messages.GetCatalogue (forwarded by the connection with its asker),
// messages.SessionOpened, messages.SessionClosed, messages.CatalogueWanted.
//
// # Messages out
//
// messages.Catalogue to askers; messages.CataloguePublished and
// messages.CatalogueFailed to the connection.
//
// # When the list is fetched
//
// When a session opens, when an asker needs it, when its time to live is nearly
// over and somebody asked since the last time, when the server announces a
// change, and when the watcher's stream has opened, because what changed while
// there was none is not announced. One fetch is in flight, and at most one is to
// follow it.
//
// A change marks the list stale before anything is fetched. One that is announced
// during a fetch makes that fetch's result stale, and exactly one more fetch
// follows, however many changes there were. A fetch that nobody waits for begins a
// second after the one before it at the earliest, so that a server which announces
// without end is not asked without end.
//
// An asker who wants a fresh list gets one whose fetch began after the question;
// every other asker gets one that no announced change had made stale when the
// question came.
//
// # When a fetch fails
//
// Who waited for it gets its reason. The list that was there is still handed out
// while its time lasts, unless the fetch was for a change that was announced or may
// have been missed; otherwise the next asker has it fetched again, and is told why
// when that fails.
//
// # What is lost on restart
//
// The cache and those who wait, who are answered. The list is fetched again; calls
// in flight on the connection are not touched. The count of versions goes on.
package catalog
