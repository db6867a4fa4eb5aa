//! The checks after the faults.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::readers::Captured;
use super::{AFTERMATH, Cluster};
use crate::crash::client::{Client, check_at, check_ledger};
use crate::crash::ledger::{self, Ledger};
use crate::crash::promises::Promise;
use support::client::Event;
use support::server::Server;

/// Everything that callers have got.
pub(super) struct Outcome {
    pub(super) clients: Vec<Client>,
    pub(super) captured: Vec<Captured>,
    pub(super) races: u64,
    /// Generations that were answered.
    pub(super) generations: Vec<String>,
}

/// Findings in the ledger.
struct Attempts {
    lines: Ledger,
    late: usize,
    overlapping: usize,
}

/// Executions with the number of their last event, and those that have not ended.
const ROWS: &str = "SELECT id || ' ' || last_seq || ' ' || status FROM executions";

/// Status of a completed execution in its row.
const COMPLETED: &str = "4";

impl Cluster<'_> {
    /// Compares the answers of these servers, and the attempts, with what callers know.
    fn check(&self, clients: &mut [Client], servers: &[&Server]) -> Attempts {
        let path = &self.around.ledger;
        check_at(clients, servers, path);
        let mut lines = ledger::read(path);
        let awakenings = self.around.awakenings.lock().unwrap().clone();
        let assert_explained = |what: &str, all: &[(String, usize)]| {
            let is_awakening =
                |at: usize| awakenings.iter().any(|(begin, end)| (*begin..*end).contains(&at));
            let unexplained: Vec<_> = all.iter().filter(|(_, at)| !is_awakening(*at)).collect();
            assert!(unexplained.is_empty(), "{what}: {unexplained:?}; {awakenings:?}");
        };
        let late = ledger::take_late(&mut lines);
        assert_explained("begun late", &late);
        let overlaps = ledger::overlaps(&lines);
        assert_explained("ended late", &overlaps);
        check_ledger(clients, &lines);
        Attempts { lines, late: late.len(), overlapping: overlaps.len() }
    }

    /// Checks everything, when all executions have ended; returns a report for people.
    pub(super) fn check_outcome(&self, outcome: &mut Outcome, servers: &[&Server]) -> String {
        let Outcome { clients, captured, races, generations } = outcome;
        let Attempts { lines, late, overlapping } = self.check(clients, servers);
        let promises: BTreeMap<&str, &Promise> = clients
            .iter()
            .flat_map(|client| &client.promises)
            .map(|promise| (&*promise.id, promise))
            .collect();
        self.check_rows(&promises);
        let streams = check_captured(captured, &promises);
        let history = self.check_history(generations, servers);
        let (latest, what) = self.weather().latest_error();
        assert!(latest < AFTERMATH, "{what} {latest:?} after the last fault");

        let acknowledged = promises.values().filter(|promise| promise.is_acknowledged).count();
        let interrupted = lines.values().filter(|lines| lines.len() > 1).count();
        let (faults, errors) = self.weather().report();
        assert!(acknowledged > 0 && *races > 0 && history > 0, "the drill has drilled nothing");
        format!(
            "{faults}; {} executions, {acknowledged} acknowledged, 0 lost; {errors}, the last \
             {latest:.1?} after a fault; the slowest answered after {} ms; {races} races; {} \
             steps, {interrupted} interrupted and run again with the same key, {overlapping} \
             overlapped, {late} begun late; {} executions read over {streams} streams; {} \
             generations answered, {history} in the history",
            promises.len(),
            self.longest.load(Ordering::Relaxed),
            lines.len(),
            captured.len(),
            generations.len(),
        )
    }

    /// Checks that all executions have ended, and that the rows have the events that servers show.
    fn check_rows(&self, promises: &BTreeMap<&str, &Promise>) {
        let rows = self.rows(ROWS);
        let mut last = BTreeMap::new();
        for row in rows.lines() {
            let [id, last_seq, status] = row.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{row}")
            };
            assert_eq!(status, COMPLETED, "{row}");
            last.insert(id, last_seq.parse::<u64>().unwrap());
        }
        for (id, promise) in promises {
            let shown = promise.events.last().map(|event| event.id);
            assert_eq!(last.get(id).copied(), shown, "last event of {id}");
        }
    }
}

/// Checks that readers have captured what servers show; returns the number of streams.
fn check_captured(captured: &[Captured], promises: &BTreeMap<&str, &Promise>) -> u64 {
    for Captured { execution: (_, id), events, .. } in captured {
        let shown: &[Event] = &promises[&**id].events;
        assert_eq!(events, shown, "{id} was read otherwise");
    }
    captured.iter().map(|captured| captured.streams).sum()
}
