// Package catalog promises that a tool list is never older than its server lets
// it be, and never staler than the last change that its server announced.
//
// The actor is a child of a connection. It owns the cache of one session's tool
// list, its time to live and the watcher of its changes.
//
// # States
//
//	detached  the connection has no session; nothing can be fetched
//	empty     there is a session, and no list yet
//	fresh     the list may be handed out
//	stale     the list must be fetched again before it is handed out
//	fetching  one fetch is in flight, and at most one is to follow it
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
// # Order
//
// A change that is announced marks the list stale before anything is fetched. One
// that is announced during a fetch makes that fetch's result stale, and exactly
// one more fetch follows, however many changes there were. An asker gets a list
// whose fetch began after the asker's own question where it asked for that, and
// else one that no announced change had made stale when it asked.
//
// # What is lost on restart
//
// The cache. The list is fetched again for the next asker; calls in flight on
// the connection are not touched.
package catalog
