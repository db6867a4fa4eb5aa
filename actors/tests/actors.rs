//! Executions as actors, in paused time, over a store in memory.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

#[path = "actors/agents.rs"]
mod agents;
#[path = "actors/answer_checks.rs"]
mod answer_checks;
#[path = "actors/approval_crashes.rs"]
mod approval_crashes;
#[path = "actors/approvals.rs"]
mod approvals;
#[path = "actors/approvals_kept.rs"]
mod approvals_kept;
#[path = "actors/approved_runs.rs"]
mod approved_runs;
#[path = "actors/ask_access.rs"]
mod ask_access;
#[path = "actors/ask_backfill.rs"]
mod ask_backfill;
#[path = "actors/ask_deadlines.rs"]
mod ask_deadlines;
#[path = "actors/ask_reminders.rs"]
mod ask_reminders;
#[path = "actors/asks.rs"]
mod asks;
#[path = "actors/blocked.rs"]
mod blocked;
#[path = "actors/bulk.rs"]
mod bulk;
#[path = "actors/bulk_families.rs"]
mod bulk_families;
#[path = "actors/call_answers.rs"]
mod call_answers;
#[path = "actors/calls.rs"]
mod calls;
#[path = "actors/cluster.rs"]
mod cluster;
#[path = "actors/cluster_activity.rs"]
mod cluster_activity;
#[path = "actors/cluster_figures.rs"]
mod cluster_figures;
#[path = "actors/cluster_generations.rs"]
mod cluster_generations;
#[path = "actors/cluster_handover.rs"]
mod cluster_handover;
#[path = "actors/cluster_large.rs"]
mod cluster_large;
#[path = "actors/cluster_observing.rs"]
mod cluster_observing;
#[path = "actors/cluster_progress.rs"]
mod cluster_progress;
#[path = "actors/continued_runs.rs"]
mod continued_runs;
#[path = "actors/costly.rs"]
mod costly;
#[path = "actors/deciding.rs"]
mod deciding;
#[path = "actors/early_answers.rs"]
mod early_answers;
#[path = "actors/ended_waits.rs"]
mod ended_waits;
#[path = "actors/erased_users.rs"]
mod erased_users;
#[path = "actors/exchange.rs"]
mod exchange;
#[path = "actors/execute.rs"]
mod execute;
#[path = "actors/family.rs"]
mod family;
#[path = "actors/following.rs"]
mod following;
#[path = "actors/forgetting.rs"]
mod forgetting;
#[path = "actors/functions.rs"]
mod functions;
#[path = "actors/generations.rs"]
mod generations;
#[path = "actors/given_up.rs"]
mod given_up;
#[path = "actors/guarded_answers.rs"]
mod guarded_answers;
#[path = "actors/handed_over_work.rs"]
mod handed_over_work;
#[path = "actors/interrupted_runs.rs"]
mod interrupted_runs;
#[path = "actors/logs.rs"]
mod logs;
#[path = "actors/lost.rs"]
mod lost;
#[path = "actors/memory.rs"]
mod memory;
#[path = "actors/moved.rs"]
mod moved;
#[path = "actors/outages.rs"]
mod outages;
#[path = "actors/ownership.rs"]
mod ownership;
#[path = "../domain/tests/machine/picture.rs"]
mod picture;
#[path = "actors/processes.rs"]
mod processes;
#[path = "actors/progress.rs"]
mod progress;
#[path = "actors/put_away.rs"]
mod put_away;
#[path = "actors/quarantine.rs"]
mod quarantine;
#[path = "actors/races.rs"]
mod races;
#[path = "actors/restart.rs"]
mod restart;
#[path = "actors/retention.rs"]
mod retention;
#[path = "actors/reversals.rs"]
mod reversals;
#[path = "actors/rows.rs"]
mod rows;
#[path = "actors/snapshots.rs"]
mod snapshots;
#[path = "actors/subscribers.rs"]
mod subscribers;
#[path = "actors/tool_approvals.rs"]
mod tool_approvals;
#[path = "actors/tool_places.rs"]
mod tool_places;
#[path = "actors/tool_questions.rs"]
mod tool_questions;
#[path = "actors/tools.rs"]
mod tools;
#[path = "actors/traces.rs"]
mod traces;
#[path = "actors/undoing.rs"]
mod undoing;
#[path = "actors/watchdog.rs"]
mod watchdog;
#[path = "actors/workflows.rs"]
mod workflows;
