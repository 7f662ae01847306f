// Package npm promises that a pinned npm package is on this machine before a
// test needs it, or that the test says why not.
//
// [Install] installs what a package-lock.json pins into the module's .cache
// folder, once for each content of the lock and once at a time. [Scripts] puts
// scripts beside them. [Serve] runs one as a server that ends with the test, tells
// what reached it, and can be stopped and started again.
//
// A machine without Node.js skips such a test; with CI=true in the environment
// it fails, so that nothing is left out in silence where it counts.
package npm
