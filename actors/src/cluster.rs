//! The slots of this process: those whose executions it serves.
//!
//! A process that has its store alone serves all slots. One that shares it with others serves those
//! that it has claimed, and hands slots over when others join or when it leaves. Commands for
//! executions of any other slot are refused before they reach a supervisor.

pub(crate) mod gain;
mod handover;
pub(crate) mod member;
pub(crate) mod ownership;
