//! The text forms of metrics: Prometheus 0.0.4 and OpenMetrics 1.0.

use std::fmt::Write as _;

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Encoder as _, TextEncoder};

/// Which text form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Prometheus,
    OpenMetrics,
}

impl Form {
    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Writes families, which must be sorted and have metrics.
    pub fn write(self, families: &[MetricFamily]) -> Result<Vec<u8>, prometheus::Error> {
        let mut bytes = Vec::new();
        match self {
            Self::Prometheus => TextEncoder::new().encode(families, &mut bytes)?,
            Self::OpenMetrics => bytes = open_metrics(families).into_bytes(),
        }
        Ok(bytes)
    }
}

/// Units that a name of OpenMetrics may end with, and that it is then said to have.
const UNITS: [&str; 2] = ["seconds", "bytes"];

fn open_metrics(families: &[MetricFamily]) -> String {
    let mut text = String::new();
    for family in families {
        let kind = family.get_field_type();
        // a counter is named without the ending that its samples have
        let name = family.name();
        let name = if kind == MetricType::COUNTER { stem_of(name) } else { name };
        let word = match kind {
            MetricType::COUNTER => "counter",
            MetricType::GAUGE => "gauge",
            MetricType::HISTOGRAM => "histogram",
            // there are none of these
            MetricType::SUMMARY | MetricType::UNTYPED => continue,
        };
        line(&mut text, format_args!("# TYPE {name} {word}"));
        let unit = UNITS
            .iter()
            .find(|unit| name.strip_suffix(**unit).is_some_and(|stem| stem.ends_with('_')));
        if let Some(unit) = unit {
            line(&mut text, format_args!("# UNIT {name} {unit}"));
        }
        line(&mut text, format_args!("# HELP {name} {}", escaped(family.help())));
        family.get_metric().iter().for_each(|metric| samples(&mut text, name, kind, metric));
    }
    text.push_str("# EOF\n");
    text
}

fn stem_of(name: &str) -> &str {
    name.strip_suffix("_total").unwrap_or(name)
}

fn samples(text: &mut String, name: &str, kind: MetricType, metric: &Metric) {
    let labels = metric.get_label();
    match kind {
        MetricType::COUNTER => {
            sample(text, name, "_total", labels, None, metric.get_counter().get_value());
        }
        MetricType::HISTOGRAM => {
            let histogram = metric.get_histogram();
            for bucket in histogram.get_bucket() {
                // `1.0`, never `1`: a bound is compared as a text
                let bound = format!("{:?}", bucket.upper_bound());
                let count = bucket.cumulative_count() as f64;
                sample(text, name, "_bucket", labels, Some(&bound), count);
            }
            let count = histogram.get_sample_count() as f64;
            sample(text, name, "_bucket", labels, Some("+Inf"), count);
            sample(text, name, "_count", labels, None, count);
            sample(text, name, "_sum", labels, None, histogram.get_sample_sum());
        }
        MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED => {
            sample(text, name, "", labels, None, metric.get_gauge().get_value());
        }
    }
}

fn sample(
    text: &mut String,
    name: &str,
    ending: &str,
    labels: &[LabelPair],
    bound: Option<&str>,
    value: f64,
) {
    text.push_str(name);
    text.push_str(ending);
    let pairs = labels.iter().map(|label| (label.name(), label.value()));
    for (index, (label, value)) in pairs.chain(bound.map(|bound| ("le", bound))).enumerate() {
        let before = if index == 0 { '{' } else { ',' };
        // Writing to a text cannot fail.
        let _ = write!(text, "{before}{label}=\"{}\"", escaped(value));
    }
    if bound.is_some() || !labels.is_empty() {
        text.push('}');
    }
    line(text, format_args!(" {value}"));
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{content}");
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use prometheus::{Histogram, HistogramOpts, IntCounterVec, IntGauge, Opts, Registry};

    use super::*;

    #[test]
    fn open_metrics_names_counters_by_their_stem_and_bounds_as_floats() {
        let registry = Registry::new();
        let counters = IntCounterVec::new(Opts::new("asked_total", "Asked"), &["who"]).unwrap();
        counters.with_label_values(&["a \"b\"\\\n"]).inc_by(2);
        let options = HistogramOpts::new("took_seconds", "Took").buckets(vec![0.5, 1.0]);
        let histogram = Histogram::with_opts(options).unwrap();
        histogram.observe(0.75);
        let gauge = IntGauge::new("size_bytes", "Size").unwrap();
        gauge.set(7);
        registry.register(Box::new(counters)).unwrap();
        registry.register(Box::new(histogram)).unwrap();
        registry.register(Box::new(gauge)).unwrap();
        let expected = r#"# TYPE asked counter
# HELP asked Asked
asked_total{who="a \"b\"\\\n"} 2
# TYPE size_bytes gauge
# UNIT size_bytes bytes
# HELP size_bytes Size
size_bytes 7
# TYPE took_seconds histogram
# UNIT took_seconds seconds
# HELP took_seconds Took
took_seconds_bucket{le="0.5"} 0
took_seconds_bucket{le="1.0"} 1
took_seconds_bucket{le="+Inf"} 1
took_seconds_count 1
took_seconds_sum 0.75
# EOF
"#;
        assert_eq!(open_metrics(&registry.gather()), expected);
    }
}
