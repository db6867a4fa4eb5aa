//! `[metrics]`: what can be counted at `/metrics`.

use super::section::Section;

/// What is counted, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsConfig {
    /// Whether anything is counted and `/metrics` is served.
    pub enabled: bool,
    /// Series that one metric may have; each bucket of a histogram is one.
    pub series_max: usize,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { enabled: true, series_max: 20_000 }
    }
}

impl MetricsConfig {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let or = Self::default();
        let enabled = section.get("enabled").and_then(|entry| entry.flag());
        let metrics = Self {
            enabled: enabled.unwrap_or(or.enabled),
            series_max: section.integer("series_max", 100..=1_000_000, or.series_max),
        };
        section.close();
        metrics
    }
}
