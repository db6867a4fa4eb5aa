//! Envelopes of JSON responses and frames.

use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::api::wire::problem::RefusalDetails;

/// `{"success":true,"data":...}`.
#[derive(Debug, Serialize)]
pub struct Success<T> {
    success: bool,
    data: T,
}

impl<T> Success<T> {
    /// Wraps the data of a response.
    pub fn of(data: T) -> Self {
        Self { success: true, data }
    }
}

/// `{"success":false,"error":"..."}`, with `data` if there are details.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
pub struct Failed<'a> {
    success: bool,
    error: &'a str,
    data: Option<&'a RefusalDetails>,
}

impl<'a> Failed<'a> {
    /// Wraps the text of a refusal.
    pub fn of(error: &'a str, data: Option<&'a RefusalDetails>) -> Self {
        Self { success: false, error, data }
    }
}

/// A frame of a WebSocket: `{"type":...,"success":true,"data":...}`.
#[derive(Debug, Serialize)]
pub struct Frame<T> {
    #[serde(rename = "type")]
    kind: &'static str,
    success: bool,
    data: T,
}

impl<T> Frame<T> {
    /// Wraps the data of a frame.
    pub fn of(kind: &'static str, data: T) -> Self {
        Self { kind, success: true, data }
    }
}

impl Frame<()> {
    /// Returns the text of a frame whose data is JSON already, and stays as it is written.
    pub fn written(kind: &'static str, json: &str) -> String {
        format!(r#"{{"type":"{kind}","success":true,"data":{}}}"#, json.trim())
    }
}

/// `{"type":"PONG","success":true}`.
#[derive(Debug, Serialize)]
pub struct BareFrame {
    #[serde(rename = "type")]
    kind: &'static str,
    success: bool,
}

impl BareFrame {
    /// Returns the response to a ping sent as text.
    pub fn pong() -> Self {
        Self { kind: "PONG", success: true }
    }
}

/// `{"type":"ERROR","success":false,"error":"..."}`.
#[derive(Debug, Serialize)]
pub struct ErrorFrame<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    success: bool,
    error: &'a str,
}

impl<'a> ErrorFrame<'a> {
    /// Wraps the error of a message.
    pub fn of(error: &'a str) -> Self {
        Self { kind: "ERROR", success: false, error }
    }
}

/// `{"type":"DROPPED","count":n}`.
#[derive(Debug, Serialize)]
pub struct DroppedFrame {
    #[serde(rename = "type")]
    kind: &'static str,
    count: u64,
}

impl DroppedFrame {
    /// Reports the number of frames that a slow subscriber has missed.
    pub fn of(count: u64) -> Self {
        Self { kind: "DROPPED", count }
    }
}
