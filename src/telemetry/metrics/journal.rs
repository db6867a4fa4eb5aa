//! Metrics of the store's writer, and of damaged records.

use std::time::Duration;

use greenroom_actors::ports::meter::{JournalMeter, SettledOutcome};
use prometheus::{Error, Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts};

use super::buckets;
use super::family::Maker;

pub(super) struct JournalSeries {
    batch_size: Histogram,
    commits: Histogram,
    failures: IntCounter,
    defects: IntCounter,
    reconnects: IntCounter,
    /// Commits whose outcome was unknown at first.
    committed: IntCounter,
    not_committed: IntCounter,
    losses: IntCounter,
    clock_offset: Gauge,
}

impl JournalSeries {
    pub(super) fn new(maker: &Maker<'_>, defects: IntCounter) -> Result<Self, Error> {
        let histogram = |name, help, buckets: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            maker.register(Histogram::with_opts(options)?)
        };
        let counter = |name, help| maker.register(IntCounter::new(name, help)?);
        let settled = maker.register(IntCounterVec::new(
            Opts::new(
                "greenroom_store_outcome_unknown_total",
                "PostgreSQL: commits whose connection failed before the answer, by what was found \
                 out afterwards",
            ),
            &["result"],
        )?)?;
        Ok(Self {
            batch_size: histogram(
                "greenroom_journal_batch_size",
                "Requests committed in one transaction",
                buckets::BATCH_SIZE,
            )?,
            commits: histogram(
                "greenroom_journal_commit_duration_seconds",
                "Duration of commits of the store",
                buckets::COMMIT,
            )?,
            failures: counter("greenroom_journal_failures_total", "Failed writes of the store")?,
            defects,
            reconnects: counter(
                "greenroom_store_reconnects_total",
                "PostgreSQL: connections of writers, and of the sign of life, opened in place of \
                 failed ones",
            )?,
            committed: settled.with_label_values(&["committed"]),
            not_committed: settled.with_label_values(&["not_committed"]),
            losses: counter(
                "greenroom_store_history_lost_total",
                "PostgreSQL: times that the database had lost commits that it had confirmed",
            )?,
            clock_offset: maker.register(Gauge::new(
                "greenroom_clock_offset_seconds",
                "PostgreSQL: time by which the wall clock of this server is ahead of that of the \
                 database",
            )?)?,
        })
    }
}

impl JournalMeter for JournalSeries {
    fn committed(&self, jobs: usize, elapsed: Duration) {
        // a batch has a few hundred requests at most, exact as a float
        self.batch_size.observe(jobs as f64);
        self.commits.observe(elapsed.as_secs_f64());
    }

    fn failed(&self) {
        self.failures.inc();
    }

    fn met_defect(&self) {
        self.defects.inc();
    }

    fn reconnected(&self) {
        self.reconnects.inc();
    }

    fn settled(&self, outcome: SettledOutcome) {
        match outcome {
            SettledOutcome::Committed => self.committed.inc(),
            SettledOutcome::NotCommitted => self.not_committed.inc(),
        }
    }

    fn lost_history(&self) {
        self.losses.inc();
    }

    fn compared_clocks(&self, ahead: f64) {
        self.clock_offset.set(ahead);
    }
}
