//! What the front end is configured with, and what its handlers share.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;

use crate::api::ApiError;
use crate::api::observability::Storage;
use crate::maintenance::Maintenance;
use crate::reload::ReloadStatus;
use crate::telemetry::metrics::{Metrics, RequestMeter, UnreadBytes};
use crate::web::admission::{Admission, AdmissionLimits, Admitted};
use crate::web::backlog::Backlog;
use crate::web::binding::Binding;
use crate::web::origin::Origins;
use crate::web::outbox::{Limits, Outbox};
use crate::web::shutdown::Shutdown;

/// Everything that the front end can be told.
#[derive(Debug, Clone)]
pub(crate) struct WebConfig {
    pub host: String,
    /// Whether only programs of this machine can reach the host.
    pub is_loopback: bool,
    /// 0: any free one.
    pub port: u16,
    pub workers: usize,
    pub body_bytes_max: usize,
    /// From the head of a request to the end of its body.
    pub body_timeout: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub write_timeout: Duration,
    /// How long an idle connection stays open for its next request.
    pub keep_alive: Duration,
    /// Whether clients that ask for it get answers in gzip.
    pub compression: bool,
    /// Pause after which an event stream or a WebSocket shows that it lives.
    pub heartbeat: Duration,
    /// Events that wait for one reader.
    pub subscriber_queue: usize,
    /// Bytes that wait for one reader.
    pub subscriber_queue_bytes: usize,
    /// Bytes that wait for all readers together.
    pub subscribers_bytes_max: usize,
    /// How long a reader with a full queue may take nothing.
    pub subscriber_stall: Duration,
    /// `scheme://host:port`, `scheme://host:*`, or `*`.
    pub origins: Vec<String>,
    pub websocket_frame_bytes_max: usize,
    /// Frames of one message, and control frames from one heartbeat to the next.
    pub websocket_fragments_max: usize,
    /// Connections and streams at once, over all workers.
    pub admission: AdmissionLimits,
    /// How long a graceful stop waits for requests in flight.
    pub shutdown_timeout: Duration,
    /// `development` or `production`.
    pub environment: &'static str,
    /// The routes, who may call them, and what the added ones lead to.
    pub binding: Binding,
    /// What keeps traces and logs.
    pub storage: Storage,
    /// Whether spans show what was said in them.
    pub observed_content: bool,
    /// Whether spans are sent to another service.
    pub is_telemetry_enabled: bool,
    /// How it stands with changes of the configuration.
    pub reload_status: Arc<ReloadStatus>,
    /// Updates and the keys of telemetry.
    pub maintenance: Arc<Maintenance>,
    /// None: nothing is counted.
    pub metrics: Option<Arc<Metrics>>,
}

/// What handlers know of the configuration.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: WebConfig,
    pub(crate) origins: Origins,
    pub(crate) shutdown: Shutdown,
    pub(crate) admission: Admission,
    /// What waits for all clients of streams and WebSockets.
    pub(crate) backlog: Backlog,
    /// What waits of large answers: apart, so that these leave the streams their room.
    pub(crate) answers: Backlog,
}

impl Settings {
    pub(crate) fn of(config: WebConfig, shutdown: Shutdown) -> Self {
        let origins = Origins::new(&config.origins, config.is_loopback);
        let admission = Admission::new(config.admission);
        let unread = config.metrics.as_ref().map(|metrics| metrics.requests().unread());
        let UnreadBytes { streams, answers } = unread.cloned().unwrap_or_default();
        let half = config.subscribers_bytes_max / 2;
        let backlog = Backlog::new("streams", config.subscribers_bytes_max - half, streams);
        let answers = Backlog::new("large answers", half, answers);
        Self { config, origins, shutdown, admission, backlog, answers }
    }

    /// Bounds of the queue towards one reader.
    pub(crate) fn queue_limits(&self) -> Limits {
        let WebConfig { subscriber_queue, subscriber_queue_bytes, .. } = self.config;
        Limits { events: subscriber_queue, bytes: subscriber_queue_bytes }
    }

    /// A queue towards one reader.
    pub(crate) fn outbox<T>(&self) -> Outbox<T> {
        Outbox::new(self.queue_limits(), &self.backlog)
            .counting(self.requests().map(|meter| meter.dropped().clone()))
    }

    /// Takes a stream or a WebSocket in; refused when there are too many, or too much waits for
    /// those that there are.
    pub(crate) fn admit_stream(&self, request: &HttpRequest) -> Result<Admitted, ApiError> {
        if self.backlog.is_full() {
            return Err(self.backlog.refusal(self.requests()));
        }
        self.admission.stream(request, self.requests())
    }

    /// What counts requests and connections, if anything is counted.
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
    async fn no_stream_is_opened_while_too_much_waits() {
        let config = WebConfig { subscribers_bytes_max: 20, ..WebConfig::default() };
        let settings = Settings::of(config, Shutdown::new());
        let request = TestRequest::default().to_http_request();
        let _answers = settings.answers.hold(11);
        assert!(settings.admit_stream(&request).is_ok(), "answers are counted apart");
        let waiting = settings.backlog.hold(11);
        let refused = settings.admit_stream(&request).unwrap_err();
        assert_eq!(refused, ApiError::AtCapacity(Shortage::UnreadBytes));
        drop(waiting);
        assert!(settings.admit_stream(&request).is_ok());
    }
}
