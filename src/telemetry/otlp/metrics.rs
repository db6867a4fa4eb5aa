//! Encodes metrics as OTLP messages, with the names of `/metrics`.

use std::collections::BTreeMap;

use greenroom_actors::domain::time::Timestamp;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1 as proto;
use opentelemetry_proto::tonic::metrics::v1::AggregationTemporality::Cumulative;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use prometheus::proto::{Metric, MetricFamily, MetricType};

use super::values::{nanoseconds, resource, scope, text};

/// Time range of sums and histograms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) start: Timestamp,
    pub(super) now: Timestamp,
}

/// Encodes a family. `None` if it is empty or of a type that this server does not use.
pub(super) fn encode(family: &MetricFamily, span: Span) -> Option<proto::Metric> {
    let metrics = family.get_metric();
    let numbers = |value: fn(&Metric) -> f64| {
        metrics.iter().map(|metric| number(metric, value(metric), span)).collect::<Vec<_>>()
    };
    let data = match family.get_field_type() {
        MetricType::COUNTER => Data::Sum(proto::Sum {
            data_points: numbers(|metric| metric.get_counter().get_value()),
            aggregation_temporality: Cumulative.into(),
            is_monotonic: true,
        }),
        MetricType::GAUGE => Data::Gauge(proto::Gauge {
            data_points: numbers(|metric| metric.get_gauge().get_value()),
        }),
        MetricType::HISTOGRAM => Data::Histogram(proto::Histogram {
            data_points: metrics.iter().map(|metric| histogram(metric, span)).collect(),
            aggregation_temporality: Cumulative.into(),
        }),
        MetricType::SUMMARY | MetricType::UNTYPED => return None,
    };
    (!metrics.is_empty()).then(|| proto::Metric {
        name: family.name().to_owned(),
        description: family.help().to_owned(),
        data: Some(data),
        ..proto::Metric::default()
    })
}

/// Returns the number of data points of a metric.
pub(super) fn points(metric: &proto::Metric) -> usize {
    match &metric.data {
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Histogram(histogram)) => histogram.data_points.len(),
        Some(Data::ExponentialHistogram(_) | Data::Summary(_)) | None => 0,
    }
}

fn number(metric: &Metric, value: f64, span: Span) -> proto::NumberDataPoint {
    proto::NumberDataPoint {
        attributes: labels(metric),
        start_time_unix_nano: nanoseconds(span.start),
        time_unix_nano: nanoseconds(span.now),
        value: Some(Value::AsDouble(value)),
        ..proto::NumberDataPoint::default()
    }
}

/// Encodes a histogram. Prometheus' buckets are cumulative, OTLP's are not and have one more,
/// which is unbounded.
fn histogram(metric: &Metric, span: Span) -> proto::HistogramDataPoint {
    let histogram = metric.get_histogram();
    let count = histogram.get_sample_count();
    let finite = histogram.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite());
    let (mut explicit_bounds, mut bucket_counts, mut below) = (Vec::new(), Vec::new(), 0);
    for bucket in finite {
        explicit_bounds.push(bucket.upper_bound());
        bucket_counts.push(bucket.cumulative_count().saturating_sub(below));
        below = bucket.cumulative_count();
    }
    bucket_counts.push(count.saturating_sub(below));
    proto::HistogramDataPoint {
        attributes: labels(metric),
        start_time_unix_nano: nanoseconds(span.start),
        time_unix_nano: nanoseconds(span.now),
        count,
        sum: Some(histogram.get_sample_sum()),
        bucket_counts,
        explicit_bounds,
        ..proto::HistogramDataPoint::default()
    }
}

fn labels(metric: &Metric) -> Vec<opentelemetry_proto::tonic::common::v1::KeyValue> {
    metric.get_label().iter().map(|label| text(label.name(), label.value())).collect()
}

/// Builds the request that exports metrics.
pub(super) fn request(
    about: &BTreeMap<String, String>,
    metrics: Vec<proto::Metric>,
) -> ExportMetricsServiceRequest {
    let scope_metrics =
        vec![proto::ScopeMetrics { scope: Some(scope()), metrics, ..Default::default() }];
    let resource = Some(resource(about));
    let of_resource = proto::ResourceMetrics { resource, scope_metrics, ..Default::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![of_resource] }
}
