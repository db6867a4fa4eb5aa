//! `[metrics]`: the metrics at `/metrics`.

use super::keys::{Takes, section};

section! {
    /// The metrics at `/metrics`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct MetricsConfig {
        /// Whether metrics are counted and served at `/metrics`.
        enabled: bool = true, Takes::Flag;
        /// Series that one metric may have; each bucket of a histogram is one. Later series count
        /// under the name `_other`.
        series_max: usize = 20_000, Takes::Integer(100..=1_000_000);
    }
}
