//! Logs the number of lost items once a minute.

use std::time::Duration;

use crate::telemetry::export::{ExporterStats, SignalCounts};

/// Interval of reports.
const INTERVAL: Duration = Duration::from_secs(60);

/// Reporter of changes of the export counters.
pub(super) struct StatsLog {
    stats: ExporterStats,
    last_reported: [SignalCounts; 3],
}

impl StatsLog {
    pub(super) fn new(stats: ExporterStats) -> Self {
        Self { stats, last_reported: [SignalCounts::default(); 3] }
    }

    /// Reports until the future is dropped.
    pub(super) async fn run(&mut self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.report();
        }
    }

    /// Logs the items lost since the last report.
    pub(super) fn report(&mut self) {
        for line in self.lines() {
            log::warn!("{line}");
        }
    }

    fn lines(&mut self) -> Vec<String> {
        let ExporterStats { traces, metrics, logs } = &self.stats;
        let rows = [("spans", traces), ("data points", metrics), ("log records", logs)];
        let mut lines = Vec::new();
        for ((what, stats), last) in rows.into_iter().zip(&mut self.last_reported) {
            let counts = stats.counts();
            let dropped = counts.dropped - last.dropped;
            let failed = counts.failed - last.failed;
            *last = counts;
            if dropped + failed > 0 {
                lines.push(format!(
                    "{what} not exported: {dropped} dropped because the queue was full, {failed} \
                     not accepted by the collector"
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
    fn each_loss_is_reported_once() {
        let stats = ExporterStats::default();
        let mut stats_log = StatsLog::new(stats.clone());
        assert!(stats_log.lines().is_empty());
        stats.traces.add_exported(7);
        stats.traces.add_dropped(2);
        stats.logs.add_failed(3);
        let line = |what, dropped, failed| {
            format!(
                "{what} not exported: {dropped} dropped because the queue was full, {failed} not \
                 accepted by the collector"
            )
        };
        let expected = [line("spans", 2, 0), line("log records", 0, 3)];
        assert_eq!(stats_log.lines(), expected);
        assert!(stats_log.lines().is_empty());
    }
}
