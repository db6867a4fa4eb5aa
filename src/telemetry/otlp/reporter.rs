//! Tells the log what did not reach the collector, once in a while.

use std::time::Duration;

use crate::telemetry::export::{ExporterStats, SignalCounts};

/// Between two reports.
const PAUSE: Duration = Duration::from_secs(60);

/// Compares what is counted with what was told.
pub(super) struct Reporter {
    stats: ExporterStats,
    told: [SignalCounts; 3],
}

impl Reporter {
    pub(super) fn new(stats: ExporterStats) -> Self {
        Self { stats, told: [SignalCounts::default(); 3] }
    }

    /// Reports until it is dropped.
    pub(super) async fn run(&mut self) {
        loop {
            tokio::time::sleep(PAUSE).await;
            self.report();
        }
    }

    /// Tells what was lost since the last time.
    pub(super) fn report(&mut self) {
        for line in self.lines() {
            log::warn!("{line}");
        }
    }

    fn lines(&mut self) -> Vec<String> {
        let ExporterStats { traces, metrics, logs } = &self.stats;
        let rows = [("spans", traces), ("data points", metrics), ("log records", logs)];
        let mut lines = Vec::new();
        for ((what, stats), told) in rows.into_iter().zip(&mut self.told) {
            let counts = stats.counts();
            let dropped = counts.dropped - told.dropped;
            let failed = counts.failed - told.failed;
            *told = counts;
            if dropped + failed > 0 {
                lines.push(format!(
                    "{what} that the collector did not get: {dropped} found too many waiting, \
                     {failed} were not taken"
                ));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_told() {
        let stats = ExporterStats::default();
        let mut reporter = Reporter::new(stats.clone());
        assert!(reporter.lines().is_empty());
        stats.traces.add_exported(7);
        stats.traces.add_dropped(2);
        stats.logs.add_failed(3);
        let rest = "that the collector did not get";
        let expected = [
            format!("spans {rest}: 2 found too many waiting, 0 were not taken"),
            format!("log records {rest}: 0 found too many waiting, 3 were not taken"),
        ];
        assert_eq!(reporter.lines(), expected);
        assert!(reporter.lines().is_empty());
    }
}
