//! A metric with labels and an upper bound on its series.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::{Error, HistogramOpts, HistogramVec, IntCounterVec, Opts};

/// Label value for names that are not configured and for series beyond the limit.
pub(super) const OTHER: &str = "_other";

/// Creates metrics and registers them.
pub(super) struct Maker<'a> {
    pub(super) registry: &'a prometheus::Registry,
    /// Maximum number of series of one metric.
    pub(super) series_max: usize,
}

/// A metric with labels. Label values beyond its limit share one series.
pub(super) struct Family<B: MetricVecBuilder> {
    metric: MetricVec<B>,
    label_count: usize,
    sets_max: usize,
    sets: Mutex<HashSet<Vec<String>>>,
}

pub(super) type Counters = Family<<IntCounterVec as Built>::Builder>;
pub(super) type Histograms = Family<<HistogramVec as Built>::Builder>;

/// Names the builder type of a vector, which `prometheus` does not export.
pub(super) trait Built {
    type Builder: MetricVecBuilder;
}

impl<B: MetricVecBuilder> Built for MetricVec<B> {
    type Builder = B;
}

impl Maker<'_> {
    pub(super) fn register<M: Collector + Clone + 'static>(&self, metric: M) -> Result<M, Error> {
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    pub(super) fn counters(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<Counters, Error> {
        let metric = self.register(IntCounterVec::new(Opts::new(name, help), labels)?)?;
        Ok(Family::new(metric, labels.len(), self.series_max))
    }

    pub(super) fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> Result<Histograms, Error> {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        let metric = self.register(HistogramVec::new(options, labels)?)?;
        // besides the buckets: `+Inf`, the sum and the count
        Ok(Family::new(metric, labels.len(), self.series_max / (buckets.len() + 3)))
    }
}

impl<B: MetricVecBuilder> Family<B> {
    fn new(metric: MetricVec<B>, label_count: usize, sets_max: usize) -> Self {
        Self { metric, label_count, sets_max, sets: Mutex::default() }
    }

    /// Returns the series of these label values. Takes a lock, so callers cache the result.
    pub(super) fn of(&self, values: &[&str]) -> B::M {
        debug_assert_eq!(values.len(), self.label_count, "one value for each label");
        let set: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.contains(&set) || sets.len() < self.sets_max {
            sets.insert(set);
            return self.metric.with_label_values(values);
        }
        self.metric.with_label_values(&vec![OTHER; self.label_count])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_beyond_the_limit_share_one_series() {
        let registry = prometheus::Registry::new();
        let maker = Maker { registry: &registry, series_max: 2 };
        let counters = maker.counters("things_total", "Things", &["name"]).unwrap();
        for name in ["a", "b", "c", "d", "a"] {
            counters.of(&[name]).inc();
        }
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "things_total{name=\"_other\"} 2",
                "things_total{name=\"a\"} 2",
                "things_total{name=\"b\"} 1"
            ]
        );
    }
}
