//! Traces: which spans belong together, and what names them.
//!
//! Nothing of a trace is stored on its own. A span's id is made of what it stands for, so that it
//! is the same live, from the record, and after a restart; and it says where the root of its trace
//! is stored, so that an id alone leads to the whole trace without an index of spans.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hash::{long_hash, span_hash};

/// Longest `tracestate` that is passed on, in characters: what W3C Trace Context asks for.
const STATE_CHARS_MAX: usize = 512;

/// Names one span within all there is: 16 lower-case hexadecimal digits, not all zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(u64);

/// A text is no span id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 16 hexadecimal digits, not all zero")]
pub struct InvalidSpanId;

impl SpanId {
    /// The eight bytes, as OTLP wants them.
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

/// What kind of root a trace has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntityType {
    Agent,
    #[default]
    Workflow,
}

impl EntityType {
    pub const ALL: [Self; 2] = [Self::Agent, Self::Workflow];

    /// The word for it on the wire and in attributes.
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

/// Bits of a span's id that tell the spans of one trace apart. Of 30,000 spans in one trace, the
/// chance that any two share an id is about one in three; nothing but the lookup of a single span
/// would notice.
const LOCAL_BITS: u32 = 30;
/// Bits that are left for the number of a row.
const ROW_BITS: u32 = 64 - LOCAL_BITS - 1;

/// Where the root of a trace is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor(u64);

/// The row of a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootRow {
    Execution(i64),
    Generation(i64),
}

impl Anchor {
    /// Of an old trace, whose spans cannot be found by their ids alone.
    pub const NONE: Self = Self(0);

    /// Rows beyond 2^33 share their anchors with others.
    pub fn of(root: RootRow) -> Self {
        let (row, kind) = match root {
            RootRow::Execution(row) => (row, 0),
            RootRow::Generation(row) => (row, 1),
        };
        let row = u64::try_from(row).unwrap_or_default() & ((1 << ROW_BITS) - 1);
        Self(row << 1 | kind)
    }

    /// The anchor that is in a span's id.
    pub fn in_span(id: SpanId) -> Self {
        Self(id.0 >> LOCAL_BITS)
    }

    /// The row; none where no anchor is known.
    pub fn root(self) -> Option<RootRow> {
        let row = i64::try_from(self.0 >> 1).ok().filter(|row| *row > 0)?;
        Some(if self.0 & 1 == 0 { RootRow::Execution(row) } else { RootRow::Generation(row) })
    }

    fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

/// The trace that something belongs to, and the span above it. Made once by the root and handed
/// down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// 32 lower-case hexadecimal digits.
    pub id: Arc<str>,
    /// The span that this belongs under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_span: Option<SpanId>,
    /// Whether that span is another process's, named by a `traceparent`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_remote: bool,
    /// What the root of the trace here is: what filters of observers ask for.
    #[serde(default, skip_serializing_if = "EntityType::is_workflow")]
    pub root_type: EntityType,
    /// The id of that workflow or agent.
    #[serde(rename = "root_workflow")]
    pub root_id: Arc<str>,
    #[serde(default, skip_serializing_if = "Anchor::is_none")]
    pub anchor: Anchor,
    /// Whether the caller asked not to record it: it is kept here and not exported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unsampled: bool,
    /// The caller's `tracestate`, passed on as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Arc<str>>,
}

/// What a new execution or generation is told of the trace around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TraceOrigin {
    /// It begins one.
    #[default]
    New,
    /// It goes on with that of a caller in another process.
    Remote(TraceParent),
    /// It works for a span of this process.
    Within(Trace),
}

impl TraceOrigin {
    /// The id of the trace that what has this id will be in.
    pub fn trace_id(&self, owner_id: &str) -> Arc<str> {
        match self {
            Self::New => own_trace_id(owner_id),
            Self::Remote(parent) => Arc::clone(&parent.trace_id),
            Self::Within(trace) => Arc::clone(&trace.id),
        }
    }
}

/// What works without a trace around it begins one.
impl From<Option<Trace>> for TraceOrigin {
    fn from(trace: Option<Trace>) -> Self {
        trace.map_or(Self::New, Self::Within)
    }
}

impl Trace {
    /// The trace of what has this id. The anchor of a root is known when its row is.
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
        };
        match from {
            TraceOrigin::New => begun(own_trace_id(owner_id)),
            TraceOrigin::Within(trace) => trace,
            TraceOrigin::Remote(parent) => Self {
                parent_span: Some(parent.span_id),
                is_remote: true,
                is_unsampled: !parent.is_sampled,
                state: parent.state,
                ..begun(parent.trace_id)
            },
        }
    }

    /// Whether nothing of this process is above it.
    pub fn is_root(&self) -> bool {
        self.parent_span.is_none() || self.is_remote
    }

    /// Returns the trace of a root that is stored in this row; below a root nothing changes.
    #[must_use]
    pub fn anchored(self, row: RootRow) -> Self {
        if self.is_root() { Self { anchor: Anchor::of(row), ..self } } else { self }
    }

    /// The same trace, for what works for a span of it.
    #[must_use]
    pub fn below(&self, span: SpanId) -> Self {
        Self { parent_span: Some(span), is_remote: false, ..self.clone() }
    }

    /// The id of the span that these parts stand for.
    pub fn span(&self, parts: &[&str]) -> SpanId {
        let hash = span_hash(parts);
        let id = match self.anchor {
            Anchor::NONE => hash,
            Anchor(anchor) => anchor << LOCAL_BITS | hash >> (64 - LOCAL_BITS),
        };
        // zero names no span
        SpanId(id.max(1))
    }

    /// The header that carries the trace on from the span above (W3C Trace Context, version 00).
    /// None at a root that has nothing above it.
    pub fn traceparent(&self) -> Option<String> {
        let flags = if self.is_unsampled { "00" } else { "01" };
        Some(format!("00-{}-{}-{flags}", self.id, self.parent_span?))
    }

    /// The headers that carry it on over HTTP, by their names.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let parent = self.traceparent();
        let state = self.state.as_deref().filter(|_| parent.is_some()).map(str::to_owned);
        let headers = [("traceparent", parent), ("tracestate", state)];
        headers.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// Whether the trace is found by the id of what has this id, which began it.
    pub fn is_named_after(&self, owner_id: &str) -> bool {
        owner_of(&self.id).is_some_and(|owner| owner == owner_id)
    }
}

/// Where the hyphens of a UUID are.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// The id of the trace that something begins: the digits of its UUID. What has an id of another
/// kind gets the fingerprint of it.
pub fn own_trace_id(owner_id: &str) -> Arc<str> {
    let digits: String = owner_id.chars().filter(|digit| *digit != '-').collect();
    let is_uuid = owner_of(&digits).is_some_and(|uuid| uuid == owner_id);
    Arc::from(if is_uuid { digits } else { long_hash(&[owner_id]) })
}

/// The id that the root of this trace has if it began the trace and its id is a UUID.
pub fn owner_of(trace_id: &str) -> Option<String> {
    let mut uuid = is_trace_id(trace_id).then(|| trace_id.to_owned())?;
    HYPHENS.into_iter().for_each(|at| uuid.insert(at, '-'));
    Some(uuid)
}

/// Whether a text names a trace: 32 lower-case hexadecimal digits, not all zero.
pub fn is_trace_id(text: &str) -> bool {
    is_lower_hex(text, 32) && text.bytes().any(|digit| digit != b'0')
}

fn is_lower_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What a caller in another process says of its trace (<https://www.w3.org/TR/trace-context/>).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: Arc<str>,
    pub span_id: SpanId,
    pub is_sampled: bool,
    pub state: Option<Arc<str>>,
}

impl TraceParent {
    /// Reads the two headers. What is malformed counts as absent, as the standard asks: a bad
    /// `traceparent` begins a new trace, a `tracestate` that is too long is left out.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut parts = traceparent.trim_matches([' ', '\t']).split('-');
        let (version, trace_id) = (parts.next()?, parts.next()?);
        let (span_id, flags) = (parts.next()?, parts.next()?);
        // later versions may add parts, the first one has none
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
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    fn begun(id: &str) -> Trace {
        Trace::of(id, EntityType::Workflow, &Arc::from("order"), TraceOrigin::New)
    }

    #[test]
    fn a_traceparent_is_read_as_the_standard_says() {
        let good = format!("00-{TRACE}-b7ad6b7169203331-01");
        let parent = TraceParent::parse(&good, Some(" a=1,b=2 ")).unwrap();
        assert_eq!((&*parent.trace_id, parent.is_sampled), (TRACE, true));
        assert_eq!(parent.span_id.to_string(), "b7ad6b7169203331");
        assert_eq!(parent.state.as_deref(), Some("a=1,b=2"));
        let later = format!("42-{TRACE}-b7ad6b7169203331-00-more");
        assert!(!TraceParent::parse(&later, None).unwrap().is_sampled);
        let zeros = "0".repeat(32);
        for bad in [
            String::new(),
            format!("00-{TRACE}-b7ad6b7169203331"),
            format!("00-{TRACE}-b7ad6b7169203331-01-more"),
            format!("ff-{TRACE}-b7ad6b7169203331-01"),
            format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
            format!("00-{zeros}-b7ad6b7169203331-01"),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{TRACE}-b7ad6b716920333-01"),
            format!("00-{TRACE}-b7ad6b7169203331-0x"),
        ] {
            assert_eq!(TraceParent::parse(&bad, None), None, "{bad}");
        }
        let long = "x".repeat(513);
        for bad in ["", long.as_str(), "a=\u{7f}", "a=é"] {
            assert_eq!(TraceParent::parse(&good, Some(bad)).unwrap().state, None, "{bad:?}");
        }
    }

    #[test]
    fn a_trace_is_named_after_the_root_that_began_it() {
        let id = "0193f0c2-7a3b-7c4d-8e5f-0123456789ab";
        let trace = begun(id);
        assert_eq!(&*trace.id, "0193f0c27a3b7c4d8e5f0123456789ab");
        assert!(trace.is_named_after(id) && trace.is_root());
        assert_eq!(TraceOrigin::New.trace_id(id), trace.id);
        for other in ["order-1", "00000000-0000-0000-0000-000000000000"] {
            let trace = begun(other);
            assert!(is_trace_id(&trace.id) && !trace.is_named_after(other), "{other}");
        }
        let below = trace.below(trace.span(&["a"]));
        assert!(!below.is_root() && below.traceparent().is_some());
    }

    #[test]
    fn what_a_caller_sends_goes_on() {
        let header = format!("00-{TRACE}-b7ad6b7169203331-00");
        let parent = TraceParent::parse(&header, None).unwrap();
        let from = TraceOrigin::Remote(parent);
        assert_eq!(&*from.trace_id("e1"), TRACE);
        let trace = Trace::of("e1", EntityType::Agent, &Arc::from("clerk"), from);
        assert!(trace.is_root() && trace.is_unsampled);
        assert_eq!(trace.traceparent(), Some(header));
    }

    #[test]
    fn a_span_id_leads_to_the_root_of_its_trace() {
        for root in [RootRow::Execution(1), RootRow::Generation(8_589_934_591)] {
            let anchor = Anchor::of(root);
            let trace = Trace { anchor, ..begun("e1") };
            for parts in [["e1", "a"], ["e1", "b"], ["e2", "a"]] {
                assert_eq!(Anchor::in_span(trace.span(&parts)).root(), Some(root));
            }
            assert_ne!(trace.span(&["e1", "a"]), trace.span(&["e1", "b"]));
        }
        assert_eq!(Anchor::NONE.root(), None);
    }

    #[test]
    fn what_was_stored_before_there_were_anchors_is_read() {
        let old =
            format!(r#"{{"id":"{TRACE}","parent_span":"b7ad6b7169203331","root_workflow":"w"}}"#);
        let trace: Trace = serde_json::from_str(&old).unwrap();
        assert_eq!((&*trace.root_id, trace.root_type), ("w", EntityType::Workflow));
        assert_eq!(serde_json::to_string(&trace).unwrap(), old);
    }
}
