// Package mysqlwire relays one session of the MySQL client/server protocol, as MySQL, MariaDB and TiDB speak it.
//
// It relays frames: only what must be understood or rewritten is decoded, everything else passes as the bytes that came.
// In pass mode the two connections are joined after (or, where TLS does not end here, before) authentication. In observe
// mode the session works in lockstep: one command at a time is sent to the server and its answer relayed, so that the
// end of each answer is known, hidden columns are cut out of it, and statements of our own find their place between the
// client's. A client that pipelines finds its commands answered in order, as by a server, which is in lockstep too.
//
// One goroutine owns a session and everything in it; while it waits for one side for longer than a moment a second one
// watches the other side, so that a killed connection or a vanished client is noticed at once.
package mysqlwire
