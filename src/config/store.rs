//! `[store]`: the store of executions.

mod password;
mod url;

use std::path::PathBuf;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;

pub use self::password::PasswordSource;
pub use self::url::{StoreUrl, StoreUrlError};
use super::entry::Entry;
use super::keys::{Keys as _, Takes, Value, section};
use super::section::Section;

section! {
    /// The store of executions.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoreConfig {
        /// Address of the store. A relative path starts at the working directory; `memory:` loses
        /// everything when the process ends. Of several hosts, the one that accepts writes is used.
        /// Connections to other machines are encrypted, and the certificate is verified with its
        /// name; `sslmode=disable` switches that off.
        url: StoreUrl = StoreUrl::default(),
            Takes::Own("`\"sqlite://PATH\"`, `\"postgres://USER@HOST,HOST:PORT/DATABASE\"` or \
                        `\"memory:\"`");
        /// Durability of acknowledged writes. `"full"`: they survive a power failure; PostgreSQL may
        /// be configured otherwise (`synchronous_commit`). `"normal"`: they survive the end of the
        /// process; a power failure may lose the newest ones. `"replicated"`: a second server of
        /// PostgreSQL has them as well, which must be configured there (`synchronous_standby_names`).
        durability: Durability = Durability::Full,
            Takes::OneOf(&["full", "normal", "replicated"]);
        /// Time after which a waiting execution without subscribers leaves memory.
        passivate_after: Duration = RuntimeLimits::default().passivate_after, Takes::Duration;
        /// PostgreSQL: password of the user in `url`, as an environment variable. Default:
        /// `secret:PGPASSWORD` if that is set, else none.
        password: Option<PasswordSource> = None, Takes::Secret;
        /// PostgreSQL: PEM file of the authorities of the server's certificate; a relative path
        /// starts at the folder of this file. Default: the authorities that the machine trusts.
        ca: Option<PathBuf> = None, Takes::Own("a path");
        /// PostgreSQL: connections that write executions.
        writers: usize = 2, Takes::Integer(1..=64);
        /// PostgreSQL: maximum number of connections for everything else.
        connections: usize = 8, Takes::Integer(1..=500);
        /// Maximum time that requests which already wait for the store keep waiting while it accepts
        /// no writes; new changes are refused with 503 at once. With PostgreSQL also for reads, and
        /// for the start of the server. Executions are not given up: they continue when the store
        /// answers again. Generations end with their callers.
        patience: Duration = RuntimeLimits::default().store_patience, Takes::Duration;
        /// PostgreSQL: folder of a small file by which executions that repeatedly end the process
        /// are recognized; it must outlive the process, and is made if it is missing. A relative
        /// path starts at the working directory.
        state_dir: PathBuf = PathBuf::from("."), Takes::Own("a path");
    }
}

/// Durability of acknowledged writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Survive a power failure.
    Full,
    /// Survive the end of the process; a power failure may lose the newest ones.
    Normal,
    /// Are on a second server of PostgreSQL as well.
    Replicated,
}

impl Durability {
    const NAMES: [(&'static str, Self); 3] =
        [("full", Self::Full), ("normal", Self::Normal), ("replicated", Self::Replicated)];
}

/// Refusal of `"replicated"` for a store that has no replicas.
pub(crate) const NO_REPLICAS: &str =
    "\"replicated\" needs a store in PostgreSQL; use \"full\" for a file";

impl StoreConfig {
    pub(crate) fn read_all(section: Section<'_>) -> Self {
        let places = ["durability", "password", "ca"].map(|key| Some(section.get(key)?.place));
        let [durability, password, ca] = places;
        let file = PathBuf::from(&*section.place.source.file);
        let mut store = Self::read(section);
        let folder = file.parent().unwrap_or(&file);
        store.ca = store.ca.map(|ca| folder.join(ca));
        if let Some(place) = durability.filter(|_| store.lacks_replicas()) {
            place.refuse(NO_REPLICAS);
        }
        if let Some(place) = password.filter(|_| store.url.password().is_some()) {
            place.warn("precedes the password in `url`, which is not used; leave that one out");
        }
        if let (Some(place), Some(problem)) = (ca, store.problem_of_authorities()) {
            place.refuse(problem);
        }
        store
    }

    /// Returns why the file of authorities cannot be used, if it is to be used.
    fn problem_of_authorities(&self) -> Option<String> {
        let file = self.ca.as_ref().filter(|_| self.url.is_of_database())?;
        let problem = url::problem_of_authorities(file)?;
        Some(format!("cannot be used: {}: {problem}", file.display()))
    }

    /// Returns true if the durability needs replicas, and the store has none.
    pub(crate) fn lacks_replicas(&self) -> bool {
        self.durability == Durability::Replicated && !self.url.is_of_database()
    }

    /// Returns the number of connections to a database, 0 for a store without one.
    pub(crate) fn sockets(&self) -> usize {
        // of generations, the sign of life, and one that replaces another
        const OTHERS: usize = 3;
        if self.url.is_of_database() { self.writers + self.connections + OTHERS } else { 0 }
    }
}

impl Value for Durability {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let written = entry.text()?;
        match Self::NAMES.iter().find(|(name, _)| *name == written) {
            Some((_, durability)) => Some(*durability),
            None => entry.refuse("must be \"full\", \"normal\" or \"replicated\""),
        }
    }
}
