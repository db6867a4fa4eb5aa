//! The store of a server under test.

use crate::postgres;

/// Environment variable: the store of the servers under test, `sqlite` (the default) or `postgres`.
pub const STORE: &str = "GREENROOM_TEST_STORE";

/// A kind of store, of which every [`Home`](crate::server::Home) has an empty one.
#[derive(Debug, Clone, Copy)]
pub enum Store {
    /// A file in the folder of the server. Tests that name it are about that file.
    Sqlite,
    /// A schema in a database.
    Postgres(&'static postgres::Server),
}

impl Store {
    /// Returns the store that [`STORE`] names.
    ///
    /// # Panics
    ///
    /// If it names another one, or one that is not installed.
    pub fn chosen() -> Self {
        match std::env::var(STORE).as_deref() {
            Ok("postgres") => Self::postgres().expect("the store of the tests is not installed"),
            Ok("sqlite") | Err(_) => Self::Sqlite,
            Ok(other) => panic!("{STORE}={other}: must be sqlite or postgres"),
        }
    }

    /// Returns the store in PostgreSQL; `None` without PostgreSQL, which is reported.
    pub fn postgres() -> Option<Self> {
        postgres::Server::shared().map(Self::Postgres)
    }

    /// Returns the address of an empty store.
    pub(crate) fn fresh_url(self) -> String {
        match self {
            Self::Sqlite => "sqlite://store.db".to_owned(),
            Self::Postgres(server) => server.fresh_url(),
        }
    }
}
