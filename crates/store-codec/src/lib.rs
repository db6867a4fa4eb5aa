//! The stored form of records: bytes, codes and keys.
//!
//! Everything here is pure, from values to values, apart from reports of damage ([`defects`]). Each
//! store adds its statements, and the way in which its client passes columns ([`columns`]). Codes
//! and the JSON of columns are part of the format of every store: a change of one needs a migration
//! of all.

pub mod codes;
pub mod columns;
mod damaged;
pub mod defects;
pub mod definitions;
pub mod dump;
pub mod facts;
pub mod history;
pub mod json;
pub mod keys;
pub mod lists;
pub mod numbers;
pub mod outcomes;
pub mod portion;
pub mod prepared;
pub mod records;
pub mod roots;
pub mod trace;
pub mod users;

pub use self::damaged::Damaged;
