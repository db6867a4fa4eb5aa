//! Traces and ids of spans.
//!
//! Spans are not stored; they are derived from facts and records. The id of a span is a hash of
//! what the span represents, so it is the same live, from the record and after a restart. It
//! contains the row of the trace's root, so that an id alone leads to the whole trace without an
//! index of spans.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hash::{long_hash, span_hash};

/// Longest `tracestate` that is propagated, in characters, as W3C Trace Context requires.
const STATE_CHARS_MAX: usize = 512;

/// Globally unique id of a span: 16 lower-case hexadecimal digits, not all zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(u64);

/// The text is not a span id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 16 hexadecimal digits, not all zero")]
pub struct InvalidSpanId;

impl SpanId {
    /// Returns the eight bytes of the OTLP form.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

impl FromStr for SpanId {
    type Err = InvalidSpanId;

    fn from_str(text: &str) -> Result<Self, InvalidSpanId> {
        if !is_lower_hex(text, 16) {
            return Err(InvalidSpanId);
        }
        match u64::from_str_radix(text, 16) {
            Ok(0) | Err(_) => Err(InvalidSpanId),
            Ok(number) => Ok(Self(number)),
        }
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for SpanId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SpanId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Kind of the root of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntityType {
    Agent,
    #[default]
    Workflow,
}

impl EntityType {
    pub const ALL: [Self; 2] = [Self::Agent, Self::Workflow];

    /// Returns the name on the wire and in attributes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Workflow => "workflow",
        }
    }

    fn is_workflow(&self) -> bool {
        *self == Self::Workflow
    }
}

/// Bits of a span's id that distinguish the spans of one trace. With 30,000 spans in one trace,
/// the probability that any two share an id is about 1/3; only the lookup of a single span would
/// be affected.
const LOCAL_BITS: u32 = 30;
/// Bits of a span's id for the number of a row.
const ROW_BITS: u32 = 64 - LOCAL_BITS - 1;

/// Location of the root of a trace in the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor(u64);

/// Row of the root of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootRow {
    Execution(i64),
    Generation(i64),
}

impl Anchor {
    /// Anchor of an old trace, whose spans cannot be found by their ids alone.
    pub const NONE: Self = Self(0);

    /// Creates the anchor of a row. Rows beyond 2^33 share their anchors with others.
    pub fn of(root: RootRow) -> Self {
        let (row, kind) = match root {
            RootRow::Execution(row) => (row, 0),
            RootRow::Generation(row) => (row, 1),
        };
        let row = u64::try_from(row).unwrap_or_default() & ((1 << ROW_BITS) - 1);
        Self(row << 1 | kind)
    }

    /// Returns the anchor that a span's id contains.
    pub fn in_span(id: SpanId) -> Self {
        Self(id.0 >> LOCAL_BITS)
    }

    /// Returns the row; `None` if the anchor is unknown.
    pub fn root(self) -> Option<RootRow> {
        let row = i64::try_from(self.0 >> 1).ok().filter(|row| *row > 0)?;
        Some(if self.0 & 1 == 0 { RootRow::Execution(row) } else { RootRow::Generation(row) })
    }

    fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

/// The trace of an execution or a generation, and the parent span. Made once by the root and
/// passed down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// 32 lower-case hexadecimal digits.
    pub id: Arc<str>,
    /// The parent span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_span: Option<SpanId>,
    /// True if the parent span is in another process, named by a `traceparent`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_remote: bool,
    /// Kind of the trace's root in this process; used by filters.
    #[serde(default, skip_serializing_if = "EntityType::is_workflow")]
    pub root_type: EntityType,
    /// Id of the root's workflow or agent.
    #[serde(rename = "root_workflow")]
    pub root_id: Arc<str>,
    #[serde(default, skip_serializing_if = "Anchor::is_none")]
    pub anchor: Anchor,
    /// True if the caller asked not to record the trace: it is kept here, but not exported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unsampled: bool,
    /// The caller's `tracestate`, propagated unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Arc<str>>,
    /// The API through which its root in this process was started; `None` for the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Arc<str>>,
}

/// Trace context that a new execution or generation starts with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TraceOrigin {
    /// It starts a new trace.
    #[default]
    New,
    /// It continues the trace of a caller in another process.
    Remote(TraceParent),
    /// It is a child of a span of this process.
    Within(Trace),
    /// The same as the origin, for a caller who came through this API.
    Through(Arc<str>, Box<Self>),
}

impl TraceOrigin {
    /// Returns the trace id of the execution or generation with this id.
    pub fn trace_id(&self, owner_id: &str) -> Arc<str> {
        match self {
            Self::New => own_trace_id(owner_id),
            Self::Remote(parent) => Arc::clone(&parent.trace_id),
            Self::Within(trace) => Arc::clone(&trace.id),
            Self::Through(_, origin) => origin.trace_id(owner_id),
        }
    }

    /// Returns true if it starts a new trace.
    pub fn is_new(&self) -> bool {
        match self {
            Self::New => true,
            Self::Through(_, origin) => origin.is_new(),
            Self::Remote(_) | Self::Within(_) => false,
        }
    }

    /// Returns the same origin for a caller who came through an API other than the usual one.
    #[must_use]
    pub fn through(self, via: impl Into<Arc<str>>) -> Self {
        Self::Through(via.into(), Box::new(self))
    }
}

/// `None` starts a new trace.
impl From<Option<Trace>> for TraceOrigin {
    fn from(trace: Option<Trace>) -> Self {
        trace.map_or(Self::New, Self::Within)
    }
}

impl Trace {
    /// Creates the trace of the execution or generation with this id. The anchor of a root is set
    /// later, when its row is known.
    pub fn of(
        owner_id: &str,
        root_type: EntityType,
        root_id: &Arc<str>,
        from: TraceOrigin,
    ) -> Self {
        let begun = |id| Self {
            id,
            parent_span: None,
            is_remote: false,
            root_type,
            root_id: Arc::clone(root_id),
            anchor: Anchor::NONE,
            is_unsampled: false,
            state: None,
            via: None,
        };
        match from {
            TraceOrigin::New => begun(own_trace_id(owner_id)),
            TraceOrigin::Within(trace) => trace,
            TraceOrigin::Through(via, origin) => {
                Self { via: Some(via), ..Self::of(owner_id, root_type, root_id, *origin) }
            }
            TraceOrigin::Remote(parent) => Self {
                parent_span: Some(parent.span_id),
                is_remote: true,
                is_unsampled: !parent.is_sampled,
                state: parent.state,
                ..begun(parent.trace_id)
            },
        }
    }

    /// Returns true if it has no parent span in this process.
    pub fn is_root(&self) -> bool {
        self.parent_span.is_none() || self.is_remote
    }

    /// Sets the anchor of a root that is stored in this row; leaves other traces unchanged.
    #[must_use]
    pub fn anchored(self, row: RootRow) -> Self {
        if self.is_root() { Self { anchor: Anchor::of(row), ..self } } else { self }
    }

    /// Returns the same trace for a child of this span.
    #[must_use]
    pub fn below(&self, span: SpanId) -> Self {
        Self { parent_span: Some(span), is_remote: false, ..self.clone() }
    }

    /// Returns the id of the span that these parts identify.
    pub fn span(&self, parts: &[&str]) -> SpanId {
        let hash = span_hash(parts);
        let id = match self.anchor {
            Anchor::NONE => hash,
            Anchor(anchor) => anchor << LOCAL_BITS | hash >> (64 - LOCAL_BITS),
        };
        // zero is not a valid span id
        SpanId(id.max(1))
    }

    /// Returns the header that propagates the trace from the parent span (W3C Trace Context,
    /// version 00); `None` at a root without a parent.
    pub fn traceparent(&self) -> Option<String> {
        let flags = if self.is_unsampled { "00" } else { "01" };
        Some(format!("00-{}-{}-{flags}", self.id, self.parent_span?))
    }

    /// Returns the names and values of the HTTP headers that propagate the trace.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let parent = self.traceparent();
        let state = self.state.as_deref().filter(|_| parent.is_some()).map(str::to_owned);
        let headers = [("traceparent", parent), ("tracestate", state)];
        headers.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// Returns true if the trace was started by the execution or generation with this id, and its
    /// id is derived from it.
    pub fn is_named_after(&self, owner_id: &str) -> bool {
        owner_of(&self.id).is_some_and(|owner| owner == owner_id)
    }
}

/// Positions of the hyphens in a UUID.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Returns the id of a new trace: the digits of its root's id if that is a UUID, otherwise a
/// hash of it.
pub fn own_trace_id(owner_id: &str) -> Arc<str> {
    let digits: String = owner_id.chars().filter(|digit| *digit != '-').collect();
    let is_uuid = owner_of(&digits).is_some_and(|uuid| uuid == owner_id);
    Arc::from(if is_uuid { digits } else { long_hash(&[owner_id]) })
}

/// Returns the id of the trace's root, provided that it started the trace and its id is a UUID.
pub fn owner_of(trace_id: &str) -> Option<String> {
    let mut uuid = is_trace_id(trace_id).then(|| trace_id.to_owned())?;
    HYPHENS.into_iter().for_each(|at| uuid.insert(at, '-'));
    Some(uuid)
}

/// Returns true for a valid trace id: 32 lower-case hexadecimal digits, not all zero.
pub fn is_trace_id(text: &str) -> bool {
    is_lower_hex(text, 32) && text.bytes().any(|digit| digit != b'0')
}

fn is_lower_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Trace context of a caller in another process (<https://www.w3.org/TR/trace-context/>).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: Arc<str>,
    pub span_id: SpanId,
    pub is_sampled: bool,
    pub state: Option<Arc<str>>,
}

impl TraceParent {
    /// Parses the two headers. Malformed headers count as absent, as the standard requires: a bad
    /// `traceparent` starts a new trace, a `tracestate` that is too long is dropped.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut parts = traceparent.trim_matches([' ', '\t']).split('-');
        let (version, trace_id) = (parts.next()?, parts.next()?);
        let (span_id, flags) = (parts.next()?, parts.next()?);
        // later versions may add parts, version 00 has no more
        let is_known = version != "00" || parts.next().is_none();
        let is_fit = is_lower_hex(version, 2) && version != "ff" && is_lower_hex(flags, 2);
        if !is_known || !is_fit || !is_trace_id(trace_id) {
            return None;
        }
        let state = tracestate.map(str::trim).filter(|state| {
            let is_fit = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
            (1..=STATE_CHARS_MAX).contains(&state.len()) && state.bytes().all(is_fit)
        });
        Some(Self {
            trace_id: Arc::from(trace_id),
            span_id: span_id.parse().ok()?,
            is_sampled: u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1),
            state: state.map(Arc::from),
        })
    }
}

#[cfg(test)]
mod tests;
