//! What every store must do, told once: each adapter runs it over fresh stores of its own.
//!
//! Panics with the name of the rule that was broken. Waits for acknowledgements only, so it runs
//! on any executor and needs no clock.

mod bench;
mod conversations;
mod counts;
mod executions;
mod forgetting;
mod generations;
mod lists;
mod logs;
mod pages;
mod recall;
mod reopening;
mod retention;
mod timers;
mod traces;

use std::sync::Arc;

use crate::ports::store::{Read, Store};

pub use bench::{Bench, Draft, completed, held, started, step_started};

/// Runs every rule, each over a fresh store.
pub async fn run(fresh: impl Fn() -> Arc<dyn Store>) {
    let bench = || Bench::new(fresh());
    executions::creation_and_continuation(bench()).await;
    executions::every_column_comes_back(bench()).await;
    executions::refusals_store_nothing(bench()).await;
    executions::snapshots_cut_the_history(bench()).await;
    executions::states_are_kept_unless_others_went_beyond(bench()).await;
    executions::facts_come_in_pages(bench()).await;
    executions::portions_give_every_fact_once(bench()).await;
    executions::facts_without_events_keep_their_place(bench()).await;
    executions::large_facts_survive_changes_of_the_row(bench()).await;
    lists::lists_are_filtered_and_paged(bench()).await;
    lists::running_ones_are_found(bench()).await;
    Box::pin(counts::run(&bench)).await;
    timers::timers_are_armed_moved_and_disarmed(bench()).await;
    timers::an_end_drops_timers_of_nodes(bench()).await;
    timers::idempotency_keys_are_taken_until_they_expire(bench()).await;
    timers::definitions_are_put_once(bench()).await;
    timers::facts_are_published_before_they_are_acknowledged(bench()).await;
    // Boxed: many rules in one future would not fit on the stack of a test.
    Box::pin(generations::run(&bench)).await;
    Box::pin(conversations::run(&bench)).await;
    Box::pin(recall::run(&bench)).await;
    Box::pin(traces::run(&bench)).await;
    Box::pin(logs::run(&bench)).await;
    Box::pin(retention::run(&bench)).await;
    Box::pin(forgetting::what_a_user_did_is_struck(bench())).await;
    Box::pin(forgetting::a_user_is_struck_from_what_is_deep(bench())).await;
}

/// Runs the rules of a store that outlives its process: `open` opens the same store each time, after
/// the one before was closed. Stores in memory have nothing to show here.
pub async fn run_over_restarts(open: impl Fn() -> Arc<dyn Store>) {
    reopening::what_was_acknowledged_is_there_again(&open).await;
    reopening::a_closed_store_takes_nothing(&open).await;
}

async fn read<T>(reading: Read<'_, T>) -> T {
    reading.await.expect("the store can be read")
}
