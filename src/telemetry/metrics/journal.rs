//! Metrics of the store's writer, and of damaged records.

use std::time::Duration;

use greenroom_actors::ports::meter::JournalMeter;
use prometheus::{Error, Histogram, HistogramOpts, IntCounter};

use super::buckets;
use super::family::Maker;

pub(super) struct JournalSeries {
    batch_size: Histogram,
    commits: Histogram,
    failures: IntCounter,
    defects: IntCounter,
}

impl JournalSeries {
    pub(super) fn new(maker: &Maker<'_>, defects: IntCounter) -> Result<Self, Error> {
        let histogram = |name, help, buckets: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            maker.register(Histogram::with_opts(options)?)
        };
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
            failures: maker.register(IntCounter::new(
                "greenroom_journal_failures_total",
                "Failed writes of the store",
            )?)?,
            defects,
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
}
