// Command runtime promises that what it prints can be relied on: standard output
// carries the answer, or with --json only JSON; standard error carries progress,
// notes, logs, and at a failure one sentence; and the exit code says which of
// them to read.
//
//	0    done
//	1    the Run, the probe or the check failed
//	2    the command line, the Spec or the configuration is wrong
//	130  interrupted: the first interrupt cancels the Run and prints its end, the
//	     second ends the process
//
// Text that came from servers, models and files reaches a terminal without its
// control characters, so that none of them can steer it.
package main
