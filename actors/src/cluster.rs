//! The slots of this process: those whose executions it serves.
//!
//! A process that has its store alone serves all slots. One that shares it with others serves those
//! that it has claimed, and hands slots over when others join or when it leaves. Commands for
//! executions of any other slot are sent to their owner, and what concerns generations and readers to
//! the members that have them.

pub(crate) mod activity;
pub(crate) mod answers;
mod feed_relay;
pub(crate) mod figures;
pub(crate) mod forward;
pub(crate) mod gain;
pub(crate) mod generations;
mod handover;
pub(crate) mod member;
pub(crate) mod observing;
mod order;
pub(crate) mod ownership;
mod relay;
pub(crate) mod request;
mod said;
