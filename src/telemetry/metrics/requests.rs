//! Counts requests over HTTP, and the connections that stay open.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use prometheus::{Error, Histogram, IntCounter, IntCounterVec, IntGauge, Opts};

use super::buckets;
use super::family::{Counters, Histograms, Maker};

/// The route of requests that no route takes.
pub const UNMATCHED: &str = "unmatched";

/// What is counted at the door.
pub struct RequestMeter {
    requests: Counters,
    durations: Histograms,
    active: IntGauge,
    streams: IntGauge,
    sockets: IntGauge,
    connections: IntGauge,
    refused_connections: IntCounter,
    refused_streams: IntCounter,
    refused_bytes: IntCounter,
    dropped: IntCounter,
    unread: UnreadBytes,
}

/// Bytes that wait for clients, counted by those that hold them.
#[derive(Debug, Clone, Default)]
pub struct UnreadBytes {
    /// Of streams and WebSockets.
    pub streams: Arc<AtomicUsize>,
    /// Of large answers.
    pub answers: Arc<AtomicUsize>,
}

/// The series of one method, route and status.
#[derive(Debug, Clone)]
pub struct RequestSeries {
    count: IntCounter,
    duration: Histogram,
}

/// Counts something while it lives.
#[derive(Debug)]
pub struct Gauged(IntGauge);

impl RequestMeter {
    pub(super) fn new(maker: &Maker<'_>) -> Result<Self, Error> {
        let labels = ["method", "route", "status"];
        let gauge = |name, help| maker.register(IntGauge::new(name, help)?);
        let refusals = Opts::new(
            "greenroom_refused_total",
            "Refused because too many are open, or too much waits",
        );
        let refusals = maker.register(IntCounterVec::new(refusals, &["what"])?)?;
        let refused = |what| refusals.get_metric_with_label_values(&[what]);
        Ok(Self {
            requests: maker.counters("http_requests_total", "Requests answered", &labels)?,
            durations: maker.histograms(
                "http_server_request_duration_seconds",
                "From the head of a request to the head of its answer",
                &labels,
                buckets::HTTP,
            )?,
            active: gauge("http_server_active_requests", "Requests whose answer has not begun")?,
            streams: gauge("greenroom_sse_subscribers", "Open streams of events")?,
            sockets: gauge("greenroom_ws_connections", "Open WebSockets")?,
            connections: gauge("greenroom_http_connections", "Open connections")?,
            refused_connections: refused("connection")?,
            refused_streams: refused("stream")?,
            refused_bytes: refused("bytes")?,
            dropped: IntCounter::new("dropped", "Shown among the readings")?,
            unread: UnreadBytes::default(),
        })
    }

    /// Looks the series up; whoever asks keeps them.
    pub fn series(&self, method: &str, route: &str, status: u16) -> RequestSeries {
        let status = status.to_string();
        let labels = [method, route, status.as_str()];
        RequestSeries { count: self.requests.of(&labels), duration: self.durations.of(&labels) }
    }

    /// Counts a request while it is worked on.
    pub fn active(&self) -> Gauged {
        Gauged::new(&self.active)
    }

    /// Counts an open event stream.
    pub fn stream(&self) -> Gauged {
        Gauged::new(&self.streams)
    }

    /// Counts an open WebSocket.
    pub fn socket(&self) -> Gauged {
        Gauged::new(&self.sockets)
    }

    /// Counts an open connection.
    pub fn connection(&self) -> Gauged {
        Gauged::new(&self.connections)
    }

    /// A connection was refused, because there are too many.
    pub fn refused_connection(&self) {
        self.refused_connections.inc();
    }

    /// A stream was refused, because there are too many.
    pub fn refused_stream(&self) {
        self.refused_streams.inc();
    }

    /// A stream or a large answer was refused, because too many bytes wait for clients.
    pub fn refused_bytes(&self) {
        self.refused_bytes.inc();
    }

    /// Bytes that wait for clients.
    pub fn unread(&self) -> &UnreadBytes {
        &self.unread
    }

    /// Events that found no room in the queue to one connection.
    pub fn dropped(&self) -> &IntCounter {
        &self.dropped
    }
}

impl std::fmt::Debug for RequestMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestMeter").finish_non_exhaustive()
    }
}

impl RequestSeries {
    /// One request was answered.
    pub fn count(&self, elapsed: Duration) {
        self.count.inc();
        self.duration.observe(elapsed.as_secs_f64());
    }
}

impl Gauged {
    fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Gauged {
    fn drop(&mut self) {
        self.0.dec();
    }
}
