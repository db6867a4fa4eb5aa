//! The `config.toml` of the repository. It shows the default of every key that has one, which tests
//! compare with those of the code.

use std::sync::LazyLock;

use toml::{Table, Value};

use super::keys::Row;

/// The text of the file.
pub(crate) const SHIPPED: &str = include_str!("../../config.toml");

static VALUES: LazyLock<Table> = LazyLock::new(|| SHIPPED.parse().unwrap_or_default());

/// Returns the default of a key; `None` if its description says what is used without it.
pub(crate) fn default_of(row: &Row) -> Option<&'static Value> {
    VALUES.get(row.section)?.get(row.name)
}
