// Package mysqlwire relays one session of the MySQL client/server protocol, as MySQL, MariaDB and TiDB speak it.
//
// It relays frames: it decodes only what it must understand or rewrite, and passes everything else as the bytes that came.
// In pass mode it joins the two connections after authentication, or before it where TLS does not end here; package relay
// copies their bytes where it can. In observe
// mode the session works in lockstep: it sends one command at a time to the server and relays its answer. So it knows the
// end of each answer, cuts hidden columns out of it, and can put statements of our own between the client's. A client that
// pipelines gets its answers in order, as from a server, which is in lockstep too.
//
// The parts of a session, from the outside in:
//
//   - Handler (serve.go) starts a session; session (session.go) is the two connections, handshake (handshake.go) the login.
//   - observation (observe.go) is a session in observe mode; command.go sends each command to where it is understood.
//   - exchange (exchange.go) is one command that executes statements: a preface of ours in front (preface.go), the request
//     in the form in which the server gets it (request.go), and the answer (answer.go).
//   - What an observation keeps between commands has one type for each subject: settings, catalogs, rowCounts, warningList,
//     writeLog, heldStamp, preparedStatements.
//   - traits (traits.go) is what differs between the products.
//
// One goroutine owns a session and everything in it. While it waits for one side for longer than a moment, a second
// goroutine watches the other side, so that the session notices a killed connection or a vanished client at once.
package mysqlwire
