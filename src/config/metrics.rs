//! `[metrics]`: the metrics at `/metrics`.

use super::features::METRICS;
use super::keys::{Takes, section};

section! {
    /// The metrics at `/metrics`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct MetricsConfig {
        /// Collects metrics and serves them at `/metrics`.
        enabled: bool = cfg!(feature = "metrics"), Takes::FlagOf(METRICS, "count");
        /// Maximum number of series of one metric; each bucket of a histogram is one. Further series
        /// are counted as `_other`.
        series_max: usize = 20_000, Takes::Integer(100..=1_000_000);
    }
}
