//! Collectors that are slow, unreachable, silent, full or faulty: counters, and no delay for
//! callers.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom::telemetry::export::{ExporterSettings, Sampler, SignalCounts, Target};
use greenroom::telemetry::otlp::Exporter;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
use greenroom_actors::observe::log_record::{LogLevel, LogRecord, LogScope};
use greenroom_actors::observe::span::{Owner, Span, SpanEvent, SpanStatus, SpanWork};
use greenroom_actors::ports::clock::SystemClock;
use greenroom_actors::ports::store::Header;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message;
use reqwest::Url;
use reqwest::header::HeaderMap;

use super::collector::{Collector, Manner};
use support::{PATIENCE, eventually};

const TIMEOUT: Duration = Duration::from_secs(3);

fn settings(endpoint: &str) -> ExporterSettings {
    let target = |signal: &str| {
        let url = Url::parse(&format!("{endpoint}/v1/{signal}")).unwrap();
        Some(Target { url, is_local: true, headers: HeaderMap::new(), timeout: TIMEOUT })
    };
    ExporterSettings {
        traces: target("traces"),
        metrics: None,
        logs: target("logs"),
        resource: BTreeMap::from([("service.name".to_owned(), "test".to_owned())]),
        sampler: Sampler::default(),
        content: false,
        interval: Duration::from_secs(60),
        batch: 4,
        queue: 10,
        queue_bytes: 1024 * 1024,
    }
}

fn exporter(endpoint: &str) -> Exporter {
    Exporter::start(settings(endpoint), Arc::new(SystemClock), None).unwrap()
}

/// Returns the end of an execution's span.
fn ended(id: &str) -> SpanEvent {
    let workflow: Arc<str> = "w".into();
    let trace = Trace::of(id, EntityType::Workflow, &workflow, TraceOrigin::New);
    let header = Header {
        id: ExecutionId::trusted(id),
        workflow_id: workflow,
        definition_hash: "h".into(),
        user_id: None,
        conversation_id: None,
        parent: None,
        trace,
        created_at: Timestamp(1),
    };
    let span = Span {
        id: header.trace.span(&[id]),
        parent: None,
        owner: Owner::Execution(Arc::new(header)),
        start: Timestamp(1),
        end: None,
        status: SpanStatus::Unset,
        work: SpanWork::Workflow {
            input: None,
            output: None,
            replayed_by: None,
            cancelled_by: None,
        },
    };
    span.ended(Timestamp(2), SpanStatus::Ok)
}

fn take(exporter: &Exporter, count: usize) {
    for number in 0..count {
        exporter.take_spans(&[ended(&format!("e{number}"))], 0);
    }
}

fn counted(exporter: &Exporter, exported: u64, dropped: u64, failed: u64) {
    let expected = SignalCounts { exported, dropped, failed };
    eventually(&format!("{expected:?}"), || {
        (exporter.stats().traces.counts() == expected).then_some(())
    });
}

#[test]
fn a_batch_refused_by_a_busy_collector_is_retried() {
    let busy = |status, headers| Manner::Answer(status, headers, Vec::new());
    let collector =
        Collector::start([busy(429, "retry-after: 1\r\n"), busy(503, ""), Manner::Leave]);
    let exporter = exporter(&collector.endpoint());
    let begin = Instant::now();
    take(&exporter, 2);
    counted(&exporter, 2, 0, 0);
    assert!(begin.elapsed() >= Duration::from_secs(1), "it was asked to wait");
    let sent = collector.sent();
    assert_eq!(sent.len(), 4);
    assert!(sent.iter().all(|sent| sent.path == "/v1/traces"));
    assert!(sent.windows(2).all(|pair| pair[0].body == pair[1].body), "the same batch again");
}

#[test]
fn a_rejected_batch_is_dropped_and_counted() {
    let partial =
        ExportTracePartialSuccess { rejected_spans: 3, error_message: "too old".to_owned() };
    let partial = ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec();
    let collector = Collector::start([
        Manner::Answer(400, "", b"<html>".to_vec()),
        Manner::Answer(200, "", partial),
        Manner::Answer(200, "", b"\xff\xff garbage".to_vec()),
        Manner::Answer(307, "location: /elsewhere\r\n", Vec::new()),
    ]);
    let exporter = exporter(&collector.endpoint());
    for (exported, failed) in [(0, 4), (1, 7), (5, 7), (5, 11)] {
        take(&exporter, 4);
        counted(&exporter, exported, 0, failed);
    }
    assert_eq!(collector.sent().len(), 4, "none was sent again");
}

#[test]
fn a_silent_or_missing_collector_delays_no_request() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hung = Collector::start(std::iter::repeat_n(Manner::Hang, 100));
    for endpoint in [format!("http://{closed}"), hung.endpoint()] {
        let exporter = exporter(&endpoint);
        // far more than the queue holds; each is counted, and queueing them needs no collector
        take(&exporter, 1_000);
        let counts = exporter.stats().traces.counts();
        assert_eq!(counts.exported, 0);
        // ten are queued, and a batch of four may be in flight
        assert!((986..=990).contains(&counts.dropped), "{counts:?}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let begin = Instant::now();
        runtime.block_on(exporter.finish());
        assert!(begin.elapsed() < PATIENCE, "bounded by the time of a request");
    }
}

#[test]
fn queued_items_are_sent_at_shutdown() {
    let collector = Collector::start([]);
    let exporter = exporter(&collector.endpoint());
    take(&exporter, 10);
    exporter.take_spans(&[], 7);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(exporter.finish());
    assert_eq!(collector.wait_for_spans(10).len(), 10);
    counted(&exporter, 10, 7, 0);
}

#[test]
fn log_records_are_exported_except_those_of_the_exporter() {
    let collector = Collector::start([]);
    let exporter = exporter(&collector.endpoint());
    let scope = LogScope {
        trace_id: Some("0af7651916cd43dd8448eb211c80319c".into()),
        span_id: Some("b7ad6b7169203331".parse().unwrap()),
        user_id: Some("ann".into()),
        ..LogScope::default()
    };
    let record = |target: &str| {
        Arc::new(LogRecord {
            at: Timestamp(1_700_000_000_000),
            level: LogLevel::Warn,
            target: target.into(),
            message: "said".to_owned(),
            attributes: vec![("n".to_owned(), 3.into())],
            scope: Arc::new(scope.clone()),
        })
    };
    exporter.take_logs(&[record("greenroom::telemetry::otlp::sender"), record("greenroom::app")]);
    let sent = &collector.wait_for_requests(1)[0];
    assert_eq!(sent.path, "/v1/logs");
    assert_eq!(sent.header("content-type"), Some("application/x-protobuf"));
    let request = ExportLogsServiceRequest::decode(&sent.body[..]).unwrap();
    let [record] = &request.resource_logs[0].scope_logs[0].log_records[..] else {
        panic!("{request:?}")
    };
    assert_eq!((record.severity_number, &*record.severity_text), (13, "WARN"));
    assert_eq!(record.time_unix_nano, 1_700_000_000_000_000_000);
    assert_eq!((record.trace_id.len(), record.span_id[0]), (16, 0xb7));
    let names: Vec<_> = record.attributes.iter().map(|pair| pair.key.as_str()).collect();
    assert_eq!(names, ["log.target", "user.id", "n"]);
}
