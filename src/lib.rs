//! The greenroom server: the edges around the runtime.

pub mod adapters;
