//! Metrics of a program that was built without the feature `metrics`: none. The types have no values,
//! so that what is counted with them is compiled away.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::ports::meter::{JournalMeter, Meter};
use greenroom_actors::registry::Registry;

use crate::telemetry::sources::{HeldBytes, Sources};

/// Label value for requests that match no route.
pub const UNMATCHED: &str = "unmatched";

/// The `Content-Type` of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "text/plain; charset=utf-8";

/// Has no values. Private in each type, so that callers do not count as unreachable code.
#[derive(Debug, Clone, Copy)]
enum Never {}

/// All metrics of one server.
#[derive(Debug)]
pub struct Metrics(Never);

impl Metrics {
    pub fn meter(&self) -> Arc<dyn Meter> {
        match self.0 {}
    }

    pub fn journal(&self) -> Arc<dyn JournalMeter> {
        match self.0 {}
    }

    pub fn requests(&self) -> &Arc<RequestMeter> {
        match self.0 {}
    }

    pub fn follow(&self, _registry: &Registry) {
        match self.0 {}
    }

    pub fn read_from(&self, _sources: Sources) {
        match self.0 {}
    }

    pub fn stored(&self) -> std::future::Ready<()> {
        match self.0 {}
    }

    pub fn text(&self, _stored: &()) -> io::Result<Vec<u8>> {
        match self.0 {}
    }
}

/// Metrics of the web server.
#[derive(Debug)]
pub struct RequestMeter(Never);

impl RequestMeter {
    pub fn series(&self, _method: &str, _route: &str, _status: u16) -> RequestSeries {
        match self.0 {}
    }

    pub fn active(&self) -> Gauged {
        match self.0 {}
    }

    pub fn stream(&self) -> Gauged {
        match self.0 {}
    }

    pub fn socket(&self) -> Gauged {
        match self.0 {}
    }

    pub fn connection(&self) -> Gauged {
        match self.0 {}
    }

    pub fn refused_connection(&self) {
        match self.0 {}
    }

    pub fn refused_stream(&self) {
        match self.0 {}
    }

    pub fn refused_bytes(&self) {
        match self.0 {}
    }

    pub fn held(&self) -> &HeldBytes {
        match self.0 {}
    }

    pub fn dropped(&self) -> &Count {
        match self.0 {}
    }
}

/// The series of one method, route and status.
#[derive(Debug, Clone)]
pub struct RequestSeries(Never);

impl RequestSeries {
    pub fn count(&self, _elapsed: Duration) {
        match self.0 {}
    }
}

/// A count of events that happened.
#[derive(Debug, Clone)]
pub struct Count(Never);

impl Count {
    pub fn inc_by(&self, _events: u64) {
        match self.0 {}
    }
}

/// Guard that counts its subject in a gauge until it is dropped.
#[derive(Debug)]
pub struct Gauged(Never);

impl Drop for Gauged {
    fn drop(&mut self) {
        match self.0 {}
    }
}
