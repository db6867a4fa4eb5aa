//! Classes of failures of the database.

use tokio_postgres::error::{DbError, SqlState};

/// Class of a failure, which decides what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server does not answer or accepts no writes: try again on a new connection. If a
    /// statement was under way, its outcome is unknown.
    Outage,
    /// The database lacks something that every request needs: a right, a table, a schema. Nothing
    /// was stored; try again until it is put back.
    Setup,
    /// The transaction met another one: try again at once. Nothing was stored.
    Conflict,
    /// The server met an error in itself, as damaged data: the same may succeed on a new connection,
    /// or never. Nothing was stored.
    Internal,
    /// The request itself is at fault: others may succeed. Nothing was stored.
    Request,
}

/// Returns the class of a failure.
///
/// Codes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>
pub(crate) fn fault_of(error: &tokio_postgres::Error) -> Fault {
    let Some(state) = error.code() else {
        // not from the server: the connection failed, unless a value could not be converted
        let is_conversion = error.to_string().starts_with("error serializing parameter");
        return if is_conversion && !error.is_closed() { Fault::Request } else { Fault::Outage };
    };
    let code = state.code();
    match state {
        &SqlState::T_R_DEADLOCK_DETECTED
        | &SqlState::T_R_SERIALIZATION_FAILURE
        | &SqlState::LOCK_NOT_AVAILABLE => Fault::Conflict,
        _ if code.starts_with("XX") => Fault::Internal,
        // 08 connection, 25 state of the session (also on a primary that was demoted), 26 its prepared
        // statements, 53 resources, 57 operator, 58 system
        _ if ["08", "25", "26", "53", "57", "58"].iter().any(|class| code.starts_with(class)) => {
            Fault::Outage
        }
        // 28 login, 3D database, 3F schema, 42 rights, tables and columns; statements are constant
        _ if ["28", "3D", "3F", "42"].iter().any(|class| code.starts_with(class)) => Fault::Setup,
        _ => Fault::Request,
    }
}

/// Returns a description of a failure of writes, and what to do about it.
pub(crate) fn advice_on(error: &tokio_postgres::Error) -> String {
    let reason = reason_of(error);
    let advice = match error.code() {
        Some(&SqlState::DISK_FULL) => "free space on the disk of the database",
        Some(&SqlState::TOO_MANY_CONNECTIONS) => {
            "raise max_connections of the database, or the limit of the role or the database if it \
             has one (ALTER ROLE or ALTER DATABASE … CONNECTION LIMIT), or lower connections and \
             writers of [store]"
        }
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            "grant the role of [store] url what it lacks, or name the role that owns the tables"
        }
        Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            "another session has locked what writes need: pg_locks and pg_stat_activity show it"
        }
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => {
            "this database accepts no writes: name the primary among the hosts of [store] url"
        }
        Some(
            &SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN | &SqlState::CANNOT_CONNECT_NOW,
        ) => "the database is stopping or starting",
        Some(_) => return reason,
        None => "check that the database runs and can be reached",
    };
    format!("{reason}; {advice}")
}

/// Returns a description of a failure of a statement, with the table if the database names one.
pub(crate) fn place_and_reason_of(error: &tokio_postgres::Error) -> String {
    let reason = reason_of(error);
    match error.as_db_error().and_then(DbError::table) {
        Some(table) => format!("table {table}: {reason}"),
        None => reason,
    }
}

/// Returns a description of a failure, without values and without the connection's password.
pub(crate) fn reason_of(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} (SQLSTATE {})", error.message(), error.code().code()),
        None => {
            let source = std::error::Error::source(error);
            source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::NoTls;

    use super::*;

    #[tokio::test]
    async fn limits_and_missing_privileges_come_with_what_to_do() {
        let Some(server) = support::postgres::Server::shared() else { return };
        server.sql("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0");
        let url = server.url();
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let closed = client.batch_execute("SELECT FROM pg_authid").await.unwrap_err();
        let crowded = url.replace("greenroom@", "crowded@");
        let full = tokio_postgres::connect(&crowded, NoTls).await.err().unwrap();
        for (error, advice) in [
            (closed, "(SQLSTATE 42501); grant the role of [store] url what it lacks, or name"),
            (full, "(SQLSTATE 53300); raise max_connections of the database, or the limit of the"),
        ] {
            let said = advice_on(&error);
            assert!(said.contains(advice), "{said}");
        }
    }
}
