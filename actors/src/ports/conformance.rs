//! Conformance suite of stores: each adapter runs it over new stores.
//!
//! Panics with the name of the violated rule, also after two minutes without an answer; only a store
//! that blocks the thread is waited for. Waits for acknowledgements only, so it runs on any executor.

/// Checks a rule over a new store, or the stores of several processes.
macro_rules! rule {
    ($rule:path, $over:expr) => {
        // boxed: many rules in one future would overflow the stack of a test
        let check = Box::pin(async { $rule($over).await });
        $crate::ports::conformance::in_time::in_time(stringify!($rule), check).await
    };
}

mod asks;
mod bench;
mod calls;
mod continuations;
mod conversations;
mod counts;
mod executions;
mod forgetting;
mod generations;
mod in_time;
mod known_tools;
mod lists;
mod logs;
mod members;
mod page_sizes;
mod pages;
mod recall;
mod reopening;
mod retention;
mod slots;
mod timers;
mod traces;

use std::sync::Arc;

use crate::ports::store::{Read, Store};

pub use bench::{Bench, Draft, completed, held, started, step_started};
pub use members::{NewMember, run_over_members};

/// Runs every rule, each over a new store.
pub async fn run<S: Store + 'static>(fresh: impl AsyncFn() -> Arc<S>) {
    let bench = async || Bench::new(fresh().await);
    rule!(executions::creation_and_continuation, bench().await);
    rule!(executions::every_column_comes_back, bench().await);
    rule!(executions::refusals_store_nothing, bench().await);
    rule!(executions::appends_follow_the_newest_revision, bench().await);
    rule!(executions::snapshots_shorten_the_facts_that_load_returns, bench().await);
    rule!(executions::snapshots_of_an_older_revision_are_ignored, bench().await);
    rule!(executions::facts_are_paged, bench().await);
    rule!(executions::portions_return_every_fact_once, bench().await);
    rule!(executions::facts_without_events_keep_their_place, bench().await);
    rule!(executions::large_facts_survive_changes_of_the_row, bench().await);
    rule!(lists::lists_are_filtered_and_paged, bench().await);
    rule!(slots::running_executions_are_listed_by_slot, bench().await);
    rule!(slots::timers_are_listed_by_slot, bench().await);
    rule!(lists::running_executions_are_listed, bench().await);
    Box::pin(counts::run(&bench)).await;
    Box::pin(asks::run(&bench)).await;
    Box::pin(calls::run(&bench)).await;
    rule!(timers::timers_are_armed_moved_and_disarmed, bench().await);
    rule!(timers::timers_of_one_time_have_an_order, bench().await);
    rule!(timers::an_end_drops_timers_of_nodes, bench().await);
    rule!(timers::idempotency_keys_are_taken_until_they_expire, bench().await);
    rule!(timers::definitions_are_put_once, bench().await);
    rule!(known_tools::the_first_look_at_a_tool_counts, bench().await);
    rule!(known_tools::a_server_has_a_limited_number_of_tools, bench().await);
    rule!(known_tools::a_definition_is_accepted_in_place_of_the_one_that_was_seen, bench().await);
    rule!(timers::facts_are_published_before_they_are_acknowledged, bench().await);
    Box::pin(generations::run(&bench)).await;
    Box::pin(continuations::run(&bench)).await;
    Box::pin(conversations::run(&bench)).await;
    Box::pin(recall::run(&bench)).await;
    Box::pin(page_sizes::run(&bench)).await;
    Box::pin(traces::run(&bench)).await;
    Box::pin(logs::run(&bench)).await;
    Box::pin(retention::run(&bench)).await;
    rule!(forgetting::facts_and_history_of_a_user_are_erased, bench().await);
    rule!(forgetting::deeply_nested_facts_of_a_user_are_erased, bench().await);
}

/// Runs the rules of a persistent store; `open` opens the same store each time, after the previous
/// one was closed. Does not apply to stores in memory.
pub async fn run_over_restarts<S: Store + 'static>(open: impl AsyncFn() -> Arc<S>) {
    let open = async || Bench::new(open().await);
    rule!(reopening::acknowledged_writes_survive_reopening, &open);
    rule!(reopening::a_closed_store_rejects_writes, &open);
}

async fn read<T>(reading: Read<'_, T>) -> T {
    reading.await.expect("the store can be read")
}
