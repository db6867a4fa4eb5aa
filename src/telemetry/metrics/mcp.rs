//! Metrics of MCP servers, read at each scrape. Their only names are those of the servers.

use prometheus::proto::{Bucket, Histogram, Metric, MetricFamily, MetricType};

use super::readings::{figures, pair};
use crate::mcp_servers::{CALL_BOUNDS, CallCounts, CallOutcome, ServerState, ServerStatus};

pub(super) fn of_servers(statuses: &[ServerStatus]) -> Vec<MetricFamily> {
    if statuses.is_empty() {
        return Vec::new();
    }
    let named = |value: fn(&ServerStatus) -> u64| {
        statuses.iter().map(move |status| (vec![("server", &*status.name)], value(status)))
    };
    let is_ready = |status: &ServerStatus| u64::from(status.state == ServerState::Ready);
    let ended = statuses.iter().flat_map(|status| {
        let counts = CallOutcome::ALL.into_iter().zip(status.calls.outcomes);
        counts.map(|(outcome, count)| {
            (vec![("server", &*status.name), ("outcome", outcome.as_str())], count)
        })
    });
    vec![
        figures(
            MetricType::GAUGE,
            "greenroom_mcp_server_connected",
            "1 while an MCP server is connected, 0 while it is not",
            named(is_ready),
        ),
        figures(
            MetricType::COUNTER,
            "greenroom_mcp_connections_lost_total",
            "Connections to an MCP server that were lost",
            named(|status| status.lost),
        ),
        figures(
            MetricType::GAUGE,
            "greenroom_mcp_tools_changed",
            "Tools of an MCP server whose definition is not the accepted one",
            named(|status| status.changed.len() as u64),
        ),
        figures(
            MetricType::GAUGE,
            "greenroom_mcp_calls_running",
            "Calls of tools of an MCP server that are being made",
            named(|status| status.running),
        ),
        figures(
            MetricType::COUNTER,
            "greenroom_mcp_calls_total",
            "Calls of tools of an MCP server that have ended; one that asks a person is made, and \
             counted, again with the answer",
            ended,
        ),
        durations(statuses),
    ]
}

fn durations(statuses: &[ServerStatus]) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name("greenroom_mcp_call_duration_seconds".to_owned());
    let help = "Duration of calls of tools of an MCP server, however they end, with waits for a \
                connection and without waits for people";
    family.set_help(help.to_owned());
    family.set_field_type(MetricType::HISTOGRAM);
    let series = statuses.iter().map(|status| {
        let mut metric = Metric::from_label(vec![pair(("server", &*status.name))]);
        metric.set_histogram(histogram(&status.calls));
        metric
    });
    family.set_metric(series.collect());
    family
}

fn histogram(calls: &CallCounts) -> Histogram {
    let bucket = |(bound, count): (f64, u64)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(count);
        bucket
    };
    let mut histogram = Histogram::default();
    let [finite @ .., all] = calls.durations;
    histogram.set_bucket(CALL_BOUNDS.into_iter().zip(finite).map(bucket).collect());
    histogram.set_sample_count(all);
    histogram.set_sample_sum(calls.duration_sum.as_secs_f64());
    histogram
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use greenroom_actors::domain::time::Timestamp;

    use super::*;
    use crate::telemetry::metrics::buckets;

    #[test]
    fn a_server_has_a_series_for_each_outcome_and_one_histogram() {
        let status = ServerStatus {
            name: "files".into(),
            transport: "http",
            state: ServerState::Ready,
            since: Timestamp(0),
            reason: None,
            protocol: None,
            tools: Vec::new(),
            left_out: Vec::new(),
            changed: Vec::new(),
            unmatched: Vec::new(),
            running: 0,
            lost: 0,
            calls: CallCounts {
                outcomes: [4, 3, 2, 1, 0, 0, 1],
                durations: [5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 11],
                duration_sum: Duration::from_millis(1500),
            },
        };
        let families = of_servers(&[status]);
        let text = prometheus::TextEncoder::new().encode_to_string(&families).unwrap();
        for line in [
            "greenroom_mcp_calls_total{server=\"files\",outcome=\"completed\"} 4",
            "greenroom_mcp_calls_total{server=\"files\",outcome=\"tool_error\"} 3",
            "greenroom_mcp_calls_total{server=\"files\",outcome=\"timed_out\"} 0",
            "greenroom_mcp_call_duration_seconds_bucket{server=\"files\",le=\"0.005\"} 5",
            "greenroom_mcp_call_duration_seconds_bucket{server=\"files\",le=\"3600\"} 6",
            "greenroom_mcp_call_duration_seconds_bucket{server=\"files\",le=\"+Inf\"} 11",
            "greenroom_mcp_call_duration_seconds_sum{server=\"files\"} 1.5",
            "greenroom_mcp_call_duration_seconds_count{server=\"files\"} 11",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
        assert_eq!(of_servers(&[]), []);
    }

    #[test]
    fn calls_have_the_buckets_of_steps() {
        assert_eq!(CALL_BOUNDS, *buckets::STEP);
    }
}
