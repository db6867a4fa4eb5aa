//! Traces as callers send them and as they are stored.

use super::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn begun(id: &str) -> Trace {
    Trace::of(id, EntityType::Workflow, &Arc::from("order"), TraceOrigin::New)
}

#[test]
fn traceparent_headers_are_parsed_as_the_standard_requires() {
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
fn a_trace_id_is_derived_from_its_root() {
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
fn the_trace_of_a_caller_is_continued() {
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
fn the_api_is_known_below_the_root_and_changes_nothing_else() {
    let header = format!("00-{TRACE}-b7ad6b7169203331-01");
    let remote = TraceOrigin::Remote(TraceParent::parse(&header, None).unwrap());
    for origin in [TraceOrigin::New, remote] {
        let of = |origin| Trace::of("e1", EntityType::Workflow, &Arc::from("order"), origin);
        let (usual, through) = (of(origin.clone()), origin.clone().through("mcp:desk"));
        assert_eq!(through.trace_id("e1"), origin.trace_id("e1"));
        let trace = of(through);
        assert_eq!(trace.below(trace.span(&["a"])).via.as_deref(), Some("mcp:desk"));
        let stored = serde_json::to_value(&trace).unwrap();
        assert_eq!(serde_json::from_value::<Trace>(stored).unwrap(), trace);
        assert_eq!(Trace { via: None, ..trace }, usual);
        assert_eq!(serde_json::to_value(usual).unwrap().get("via"), None);
    }
}

#[test]
fn traces_stored_without_an_anchor_are_read() {
    let old = format!(r#"{{"id":"{TRACE}","parent_span":"b7ad6b7169203331","root_workflow":"w"}}"#);
    let trace: Trace = serde_json::from_str(&old).unwrap();
    assert_eq!((&*trace.root_id, trace.root_type), ("w", EntityType::Workflow));
    assert_eq!(serde_json::to_string(&trace).unwrap(), old);
}
