//! The configured store.

#[cfg(feature = "sqlite")]
mod file;

use super::finding::{Finding, State};
use crate::config::{Config, StoreUrl};

const NAME: &str = "store";

/// Looks at the store, and at the disk that it is on.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    match &config.store.url {
        #[cfg(feature = "sqlite")]
        StoreUrl::Sqlite(path) => file::look(path),
        #[cfg(not(feature = "sqlite"))]
        StoreUrl::Sqlite(_) => {
            vec![Finding::new(State::Failed, NAME, crate::config::NO_SQLITE.to_owned())]
        }
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(_) => {
            let opened = crate::app::open_nodes(config);
            let nodes = opened.and_then(|it| it.look().map_err(|error| error.to_string()));
            vec![match nodes {
                Ok(nodes) => {
                    let text =
                        format!("{} answers; servers: {}", config.store.url, nodes.nodes.len());
                    Finding::new(State::Good, NAME, text)
                }
                Err(why) => Finding::new(State::Failed, NAME, why),
            }]
        }
        StoreUrl::Memory => {
            let text = "\"memory:\" keeps nothing when the server ends";
            vec![Finding::new(State::Warned, NAME, text)]
        }
    }
}
