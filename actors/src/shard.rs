//! The threads that run executions, their supervisors, and checks of both.

pub(crate) mod arbiters;
pub(crate) mod ask_backfill;
pub(crate) mod ask_reminders;
pub(crate) mod evaluation;
pub(crate) mod memory_budget;
pub(crate) mod messages;
pub mod pulse;
pub(crate) mod quarantine;
pub(crate) mod scheduler;
pub(crate) mod stalls;
pub mod stuck;
pub(crate) mod supervisor;
pub(crate) mod sweeper;
pub(crate) mod waiting;
pub(crate) mod watchdog;
