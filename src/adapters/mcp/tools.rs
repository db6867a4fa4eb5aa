//! Tools of servers: which ones are used, and whether they are the accepted ones.

pub(crate) mod admission;
pub(crate) mod changes;
pub(crate) mod records;
pub(crate) mod refresh;
pub(crate) mod review;
