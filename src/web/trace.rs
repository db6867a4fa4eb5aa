//! Trace headers of a request (W3C Trace Context).

use actix_web::http::header::HeaderMap;
use greenroom_actors::requests::{TraceOrigin, TraceParent};

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// Returns the trace that work for this request belongs to. Malformed headers begin a new one, as
/// the standard requires.
pub(crate) fn origin_of(headers: &HeaderMap) -> TraceOrigin {
    parent_of(headers).map_or(TraceOrigin::New, TraceOrigin::Remote)
}

fn parent_of(headers: &HeaderMap) -> Option<TraceParent> {
    let mut parents = headers.get_all(TRACEPARENT);
    let parent = parents.next()?.to_str().ok()?;
    if parents.next().is_some() {
        return None;
    }
    let lines = headers.get_all(TRACESTATE).map(|line| line.to_str());
    let state = lines.collect::<Result<Vec<_>, _>>().map(|lines| lines.join(",")).ok();
    TraceParent::parse(parent, state.as_deref())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn origin(lines: &[(&'static str, &str)]) -> TraceOrigin {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let value = HeaderValue::from_str(value).unwrap();
            headers.append(HeaderName::from_static(name), value);
        }
        origin_of(&headers)
    }

    #[test]
    fn a_malformed_or_repeated_traceparent_begins_a_new_trace() {
        let remote =
            |state| TraceParent::parse(PARENT, state).map_or(TraceOrigin::New, TraceOrigin::Remote);
        assert_ne!(remote(None), TraceOrigin::New);
        let rows: [(&[(&'static str, &str)], TraceOrigin); 7] = [
            (&[], TraceOrigin::New),
            (&[("traceparent", PARENT)], remote(None)),
            (&[("traceparent", PARENT), ("tracestate", "a=1")], remote(Some("a=1"))),
            (
                &[("traceparent", PARENT), ("tracestate", "a=1"), ("tracestate", "b=2")],
                remote(Some("a=1,b=2")),
            ),
            (&[("traceparent", PARENT), ("traceparent", PARENT)], TraceOrigin::New),
            (&[("traceparent", "00-x")], TraceOrigin::New),
            (&[("tracestate", "a=1")], TraceOrigin::New),
        ];
        for (lines, expected) in rows {
            assert_eq!(origin(lines), expected, "{lines:?}");
        }
    }
}
