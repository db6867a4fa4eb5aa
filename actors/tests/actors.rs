//! Executions as actors, in paused time, over a store in memory.

#[path = "actors/execute.rs"]
mod execute;
#[path = "actors/family.rs"]
mod family;
#[path = "actors/readers.rs"]
mod readers;
#[path = "actors/restart.rs"]
mod restart;
#[path = "actors/workflows.rs"]
mod workflows;
