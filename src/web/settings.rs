//! Configuration of the front end, and state shared by its handlers.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};

use crate::api::ApiError;
use crate::api::faces::mcp::ServedFace;
use crate::api::inbox::Links;
use crate::api::observability::Storage;
use crate::faces::OpenAiFace;
use crate::maintenance::Maintenance;
use crate::mcp_servers::McpServers;
use crate::reload::ReloadStatus;
use crate::telemetry::metrics::{Metrics, RequestMeter};
use crate::telemetry::sources::HeldBytes;
use crate::web::admission::{Admission, AdmissionLimits, Admitted};
use crate::web::backlog::{Backlog, Subject};
use crate::web::binding::Binding;
#[cfg(feature = "ui")]
use crate::web::console::ConsoleSettings;
use crate::web::origin::Origins;
use crate::web::shutdown::Shutdown;
use crate::web::subscriber_queue::{Limits, SubscriberQueue};

/// Configuration of the front end.
#[derive(Debug, Clone)]
pub(crate) struct WebConfig {
    pub host: String,
    /// True if the host is a loopback address.
    pub is_loopback: bool,
    /// 0: any free port.
    pub port: u16,
    pub workers: usize,
    pub body_bytes_max: usize,
    /// Timeout from the head of a request to the end of its body.
    pub body_timeout: Duration,
    /// Time without acknowledgement of sent bytes after which a connection is closed.
    pub write_timeout: Duration,
    /// Time that an idle connection stays open for its next request.
    pub keep_alive: Duration,
    /// True if answers are compressed for clients that accept gzip.
    pub compression: bool,
    /// Interval of keep-alive comments and pings.
    pub heartbeat: Duration,
    /// Maximum number of events queued for one subscriber.
    pub subscriber_queue: usize,
    /// Maximum number of bytes queued for one subscriber.
    pub subscriber_queue_bytes: usize,
    /// Maximum number of bytes queued for all clients.
    pub subscribers_bytes_max: usize,
    /// Maximum number of bytes of all request bodies that are held at once.
    pub requests_bytes_max: usize,
    /// Time without progress after which a subscriber with a full queue is disconnected.
    pub subscriber_stall: Duration,
    /// `scheme://host:port`, `scheme://host:*`, or `*`.
    pub origins: Vec<String>,
    pub websocket_frame_bytes_max: usize,
    /// Maximum number of frames per message, and of control frames per heartbeat.
    pub websocket_fragments_max: usize,
    /// Limits of open connections and streams, over all workers.
    pub admission: AdmissionLimits,
    /// Time that a graceful stop waits for requests in progress.
    pub shutdown_timeout: Duration,
    /// `development` or `production`.
    pub environment: &'static str,
    /// Routes, their access rules, and handlers of added routes.
    pub binding: Binding,
    /// Settings of the routes for clients of OpenAI; `None` without them.
    pub openai: Option<Arc<OpenAiFace>>,
    /// Storage of traces and logs.
    pub storage: Storage,
    /// Settings of the console.
    #[cfg(feature = "ui")]
    pub console: ConsoleSettings,
    /// Roles that may pass over claims and assignments of asks.
    pub force_roles: Vec<String>,
    /// `None` without links to asks.
    pub links: Option<Links>,
    /// Faces for clients of MCP.
    pub mcp: Vec<Arc<ServedFace>>,
    /// True if spans include inputs and outputs.
    pub observed_content: bool,
    /// True if spans are exported to another service.
    pub is_telemetry_enabled: bool,
    /// Outcome of the latest change of the configuration.
    pub reload_status: Arc<ReloadStatus>,
    /// Updates and the keys of telemetry.
    pub maintenance: Arc<Maintenance>,
    /// MCP servers whose tools are used; `None` if there are none.
    pub servers: Option<Arc<dyn McpServers>>,
    /// `None` if metrics are off.
    pub metrics: Option<Arc<Metrics>>,
}

/// Configuration and shared state of handlers.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: WebConfig,
    pub(crate) origins: Origins,
    pub(crate) shutdown: Shutdown,
    /// Start of the server, in seconds since 1970.
    pub(crate) started_s: i64,
    pub(crate) admission: Admission,
    /// Bytes queued for streams and WebSockets.
    pub(crate) backlog: Backlog,
    /// Bytes queued of large answers; separate, so that they leave room for streams.
    pub(crate) answers: Backlog,
    /// Bytes of request bodies, beyond a small part of each.
    pub(crate) bodies: Backlog,
}

impl Settings {
    pub(crate) fn of(config: WebConfig, shutdown: Shutdown) -> Self {
        let links = config.links.as_ref().map(|links| links.base_url.as_str());
        let origins = Origins::new(&config.origins, config.is_loopback, links);
        let admission = Admission::new(config.admission);
        let held = config.metrics.as_ref().map(|metrics| metrics.requests().held());
        let HeldBytes { streams, answers, bodies } = held.cloned().unwrap_or_default();
        let half = config.subscribers_bytes_max / 2;
        let others = config.subscribers_bytes_max - half;
        let backlog = Backlog::new(Subject::Streams, others, streams);
        let answers = Backlog::new(Subject::Answers, half, answers);
        let bodies = Backlog::new(Subject::Bodies, config.requests_bytes_max, bodies);
        let started_s = SystemClock.now().0 / 1000;
        Self { config, origins, shutdown, started_s, admission, backlog, answers, bodies }
    }

    /// Returns the limits of the queue of one subscriber.
    pub(crate) fn queue_limits(&self) -> Limits {
        let WebConfig { subscriber_queue, subscriber_queue_bytes, .. } = self.config;
        Limits { events: subscriber_queue, bytes: subscriber_queue_bytes }
    }

    /// Returns a queue for one subscriber.
    pub(crate) fn subscriber_queue<T>(&self) -> SubscriberQueue<T> {
        SubscriberQueue::new(self.queue_limits(), &self.backlog)
            .counting(self.requests().map(|meter| meter.dropped().clone()))
    }

    /// Admits a stream or a WebSocket; refuses it if too many are open or too many bytes are
    /// queued.
    pub(crate) fn admit_stream(&self, request: &HttpRequest) -> Result<Admitted, ApiError> {
        if self.backlog.is_full() {
            return Err(self.backlog.refusal(self.requests()));
        }
        self.admission.stream(request, self.requests())
    }

    /// Returns the metrics of requests and connections, if metrics are on.
    pub(crate) fn requests(&self) -> Option<&RequestMeter> {
        self.config.metrics.as_ref().map(|metrics| &**metrics.requests())
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::api::error::Shortage;

    #[actix_web::test]
    async fn streams_are_refused_while_the_backlog_is_full() {
        let config = WebConfig { subscribers_bytes_max: 20, ..WebConfig::default() };
        let settings = Settings::of(config, Shutdown::new());
        let request = TestRequest::default().to_http_request();
        let _answers = settings.answers.hold(11);
        assert!(settings.admit_stream(&request).is_ok(), "answers are counted separately");
        let waiting = settings.backlog.hold(11);
        let refused = settings.admit_stream(&request).unwrap_err();
        assert_eq!(refused, ApiError::AtCapacity(Shortage::UnreadBytes));
        drop(waiting);
        assert!(settings.admit_stream(&request).is_ok());
    }
}
