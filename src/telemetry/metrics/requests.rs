//! Metrics of HTTP requests, connections and streams.

use std::time::Duration;

use prometheus::{Error, Histogram, IntCounter, IntCounterVec, IntGauge, Opts};

use super::buckets;
use super::family::{Counters, Histograms, Maker};
use crate::telemetry::sources::HeldBytes;

/// Label value for requests that match no route.
pub const UNMATCHED: &str = "unmatched";

/// Metrics of the web server.
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
    held: HeldBytes,
}

/// The series of one method, route and status.
#[derive(Debug, Clone)]
pub struct RequestSeries {
    count: IntCounter,
    duration: Histogram,
}

/// A count of events that happened.
pub type Count = IntCounter;

/// Guard that counts its subject in a gauge until it is dropped.
#[derive(Debug)]
pub struct Gauged(IntGauge);

impl RequestMeter {
    pub(super) fn new(maker: &Maker<'_>) -> Result<Self, Error> {
        let labels = ["method", "route", "status"];
        let gauge = |name, help| maker.register(IntGauge::new(name, help)?);
        let refusals = Opts::new(
            "greenroom_refused_total",
            "Connections, streams, answers and bodies refused because a limit is reached",
        );
        let refusals = maker.register(IntCounterVec::new(refusals, &["what"])?)?;
        let refused = |what| refusals.get_metric_with_label_values(&[what]);
        Ok(Self {
            requests: maker.counters("http_requests_total", "HTTP requests answered", &labels)?,
            durations: maker.histograms(
                "http_server_request_duration_seconds",
                "Time from the head of a request to the head of its response",
                &labels,
                buckets::HTTP,
            )?,
            active: gauge("http_server_active_requests", "Requests whose response has not begun")?,
            streams: gauge("greenroom_sse_subscribers", "Open event streams")?,
            sockets: gauge("greenroom_ws_connections", "Open WebSockets")?,
            connections: gauge("greenroom_http_connections", "Open connections")?,
            refused_connections: refused("connection")?,
            refused_streams: refused("stream")?,
            refused_bytes: refused("bytes")?,
            // not registered: served as `greenroom_events_dropped_total{at="reader"}`
            dropped: IntCounter::new("dropped", "Events dropped for slow clients")?,
            held: HeldBytes::default(),
        })
    }

    /// Looks up the series of a method, route and status. Takes a lock, so callers cache them.
    pub fn series(&self, method: &str, route: &str, status: u16) -> RequestSeries {
        let status = status.to_string();
        let labels = [method, route, status.as_str()];
        RequestSeries { count: self.requests.of(&labels), duration: self.durations.of(&labels) }
    }

    /// Counts a request as active until the guard is dropped.
    pub fn active(&self) -> Gauged {
        Gauged::new(&self.active)
    }

    /// Counts an event stream as open until the guard is dropped.
    pub fn stream(&self) -> Gauged {
        Gauged::new(&self.streams)
    }

    /// Counts a WebSocket as open until the guard is dropped.
    pub fn socket(&self) -> Gauged {
        Gauged::new(&self.sockets)
    }

    /// Counts a connection as open until the guard is dropped.
    pub fn connection(&self) -> Gauged {
        Gauged::new(&self.connections)
    }

    /// Counts a connection refused because too many are open.
    pub fn refused_connection(&self) {
        self.refused_connections.inc();
    }

    /// Counts a stream refused because too many are open.
    pub fn refused_stream(&self) {
        self.refused_streams.inc();
    }

    /// Counts a stream, a large answer or a body refused because too many bytes are held.
    pub fn refused_bytes(&self) {
        self.refused_bytes.inc();
    }

    /// Returns the counters of held bytes.
    pub fn held(&self) -> &HeldBytes {
        &self.held
    }

    /// Returns the counter of events dropped because the queue of a connection was full.
    pub fn dropped(&self) -> &Count {
        &self.dropped
    }
}

impl std::fmt::Debug for RequestMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestMeter").finish_non_exhaustive()
    }
}

impl RequestSeries {
    /// Counts an answered request.
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
