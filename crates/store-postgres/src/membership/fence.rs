//! Fencing: a server is declared gone, and stores nothing from then on.

/// Locks the row of a server that is alive, if a beat is given only at that beat. Claims of the
/// server, and what others give to it, lock the row as well: none of that is under way afterwards.
pub(super) const LOCK: &str = "SELECT FROM nodes
    WHERE node = $1 AND state < 2 AND beat = coalesce($2, beat) FOR UPDATE";

/// Statements that make a server be gone, whose row is locked, in this order. The second one waits
/// for what the server is storing at the moment. Each sees what is committed when it begins.
pub(super) const CUT: [&str; 3] = [
    "UPDATE nodes SET state = 2 WHERE node = $1",
    "DELETE FROM lanes WHERE node = $1",
    "UPDATE slots SET node = NULL WHERE node = $1",
];

/// Notes that the owners of slots have changed. All transactions change slots before that.
pub(super) const NOTE: &str = "UPDATE meta SET map = map + 1";

/// Ends the connections of a server that hold locks on the rows by which it is fenced. By name and
/// table, not by process number: after a failover that number is another connection's, and another
/// schema may have a server of the same number.
pub(super) const TERMINATE: &str = "SELECT pg_terminate_backend(a.pid, 2000)
    FROM pg_stat_activity a
    WHERE a.datname = current_database()
    AND starts_with(a.application_name, $1) AND EXISTS (SELECT FROM pg_locks l
        WHERE l.pid = a.pid AND l.relation IN ('lanes'::regclass, 'nodes'::regclass))";

/// Maximum number of times that the connections of a server are ended because it hangs inside a
/// transaction.
pub(super) const TERMINATIONS_MAX: usize = 3;

/// Limit of the wait for the rows of a server.
pub(super) const IMPATIENT: &str = "SET LOCAL lock_timeout = '2s'";

/// Returns how the names of the connections of a server begin.
pub(super) fn connections_of(node: i64) -> String {
    format!("greenroom/{node}/")
}
