//! Rules of traces.

use std::sync::Arc;

use super::bench::{Bench, Draft, completed, held, numbers, step_started};
use super::generations::{record, with_steps, working};
use super::{pages, read};
use crate::domain::footprint::of_fact;
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::domain::trace::{
    Anchor, EntityType, RootRow, SpanId, Trace, TraceOrigin, TraceParent, own_trace_id,
};
use crate::ports::store::{
    GenerationRecord, GenerationStep, GenerationWrite, Header, Root, RootCursor, RootFilter,
    RootPage, StepOrigin, TraceQuery, TraceRecord, TraceSize,
};
use crate::visibility::Visibility;

pub(super) async fn run(bench: &impl AsyncFn() -> Bench) {
    rule!(traces_are_stored_unchanged, bench().await);
    rule!(roots_are_filtered_and_paged, bench().await);
    rule!(paging_is_stable_while_roots_are_added, bench().await);
    rule!(a_trace_contains_all_its_executions_and_generations, bench().await);
    rule!(one_traceparent_may_start_several_roots, bench().await);
    rule!(the_size_of_a_trace_is_bounded, bench().await);
    rule!(unmatched_content_does_not_count_against_the_limit, bench().await);
    rule!(traces_are_found_by_row, bench().await);
}

fn uuid(number: u32) -> String {
    format!("0193f0c2-7a3b-7c4d-8e5f-{number:012x}")
}

fn span() -> SpanId {
    "b7ad6b7169203331".parse().expect("a span id")
}

fn traceparent() -> TraceParent {
    let header = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00";
    TraceParent::parse(header, Some("vendor=1")).expect("a traceparent")
}

fn of_workflow(id: &str, from: TraceOrigin) -> Trace {
    Trace::of(id, EntityType::Workflow, &Arc::from("order"), from)
}

fn of_agent(id: &str, from: TraceOrigin) -> Trace {
    Trace::of(id, EntityType::Agent, &Arc::from("clerk"), from)
}

/// Drafts the start of a root, as runtimes make it.
fn root(bench: &mut Bench, id: &str, from: TraceOrigin) -> Draft {
    let mut draft = bench.creation(id);
    let anchor = Anchor::of(RootRow::Execution(draft.row));
    draft.header.trace = Trace { anchor, ..of_workflow(id, from) };
    draft
}

/// Returns a generation that is a root, as runtimes make it.
fn root_generation(bench: &Bench, id: &str, from: TraceOrigin) -> GenerationWrite {
    let row = bench.generation_row();
    let anchor = Anchor::of(RootRow::Generation(row));
    let trace = Trace { anchor, ..of_agent(id, from) };
    GenerationWrite { row, ..with_steps(&GenerationRecord { trace, ..working(id) }, &[]) }
}

async fn put(bench: &Bench, write: GenerationWrite) {
    assert_eq!(bench.store.record_generation(write).await, Ok(()), "record a generation");
}

async fn traces_are_stored_unchanged(mut bench: Bench) {
    let remote = TraceOrigin::Remote(traceparent());
    let family = of_workflow(&uuid(99), TraceOrigin::New).below(span());
    let in_workflow = Trace { anchor: Anchor::of(RootRow::Execution(7)), ..family };
    let in_agent = of_agent(&uuid(98), TraceOrigin::New).below(span());
    let in_agent = Trace { anchor: Anchor::of(RootRow::Generation(3)), ..in_agent };
    let origins = [
        ("new", TraceOrigin::New),
        ("remote", remote),
        ("in a workflow", TraceOrigin::Within(in_workflow)),
        ("in an agent", TraceOrigin::Within(in_agent)),
    ];
    let mut number = 0;
    for (name, origin) in origins {
        for id in [uuid(number), format!("chosen-{number}")] {
            number += 1;
            // with an anchor, and without, as in old files
            for (id, is_anchored) in [(id.clone(), true), (format!("{id}-old"), false)] {
                let mut draft = bench.creation(&id);
                draft.header.trace = of_workflow(&id, origin.clone());
                let mut write = with_steps(&working(&id), &[]);
                write.row = bench.generation_row();
                write.record.trace = of_agent(&id, origin.clone());
                if is_anchored && draft.header.trace.is_root() {
                    draft.header.trace.anchor = Anchor::of(RootRow::Execution(draft.row));
                    write.record.trace.anchor = Anchor::of(RootRow::Generation(write.row));
                }
                bench.take(&draft).await;
                assert_eq!(bench.describe(&id).await, Some(draft.projection()), "{name} {id}");
                put(&bench, write.clone()).await;
                let kept = read(bench.store.generation(&id)).await.map(|entry| entry.record);
                assert_eq!(kept.as_ref(), Some(&write.record), "{name} {id}");
                put(&bench, write.clone()).await;
                let kept = read(bench.store.generation(&id)).await.map(|entry| entry.record);
                assert_eq!(kept.as_ref(), Some(&write.record), "{name} {id}, repeated");
            }
        }
    }
}

/// A root as shown by a list.
#[derive(Debug, Clone, PartialEq)]
struct Shown {
    kind: EntityType,
    id: String,
    entity: String,
    user: Option<String>,
    at: Timestamp,
}

impl Shown {
    fn of(root: &Root) -> Self {
        let at = root.started_at();
        match root {
            Root::Execution(projection) => {
                let header = &projection.header;
                Self {
                    kind: EntityType::Workflow,
                    id: header.id.to_string(),
                    entity: header.workflow_id.to_string(),
                    user: header.user_id.as_deref().map(str::to_owned),
                    at,
                }
            }
            Root::Generation(record) => {
                assert!(record.input.is_null() && record.output.is_none(), "{}", record.id);
                let GenerationRecord { id, agent_id, user_id, .. } =
                    GenerationRecord::clone(record);
                Self { kind: EntityType::Agent, id, entity: agent_id, user: user_id, at }
            }
        }
    }

    fn matches(&self, filter: &RootFilter) -> bool {
        filter.entity_type.is_none_or(|kind| kind == self.kind)
            && filter.entity_id.as_deref().is_none_or(|id| id == self.entity)
            && filter.visibility.allows(self.user.as_deref())
            && filter.from.is_none_or(|from| self.at >= from)
    }
}

/// Adds executions and generations, one each millisecond, every fourth below another. Returns the
/// roots, oldest first.
async fn fill(bench: &mut Bench, numbers: std::ops::Range<u32>) -> Vec<Shown> {
    let mut roots = Vec::new();
    let users = [None, Some("u1"), Some("u2")];
    for i in numbers {
        let (id, at) = (uuid(i), Timestamp(1000 + i64::from(i)));
        let user = users[i as usize % users.len()];
        let entity = ["clerk", "order", "refund"][i as usize / 2 % 3].to_owned();
        let is_below = i % 4 == 3;
        let origin = match is_below {
            true => TraceOrigin::Within(of_workflow(&uuid(0), TraceOrigin::New).below(span())),
            false if i % 5 == 0 => TraceOrigin::Remote(traceparent()),
            false => TraceOrigin::New,
        };
        let kind = if i % 3 == 0 { EntityType::Agent } else { EntityType::Workflow };
        match kind {
            EntityType::Workflow => {
                let mut draft = root(bench, &id, origin);
                draft.header.workflow_id = Arc::from(entity.as_str());
                draft.header.user_id = user.map(Arc::from);
                draft.header.created_at = at;
                bench.take(&draft).await;
            }
            EntityType::Agent => {
                let mut write = root_generation(bench, &id, origin);
                write.record.agent_id.clone_from(&entity);
                write.record.user_id = user.map(str::to_owned);
                write.record.start_time = at;
                put(bench, write).await;
            }
        }
        if !is_below {
            roots.push(Shown { kind, id, entity, user: user.map(str::to_owned), at });
        }
    }
    roots
}

async fn walk(
    bench: &Bench,
    filter: &RootFilter,
    from: Option<RootCursor>,
    n: usize,
) -> Vec<Shown> {
    let pages = pages::every("traces", async |after: Option<RootCursor>| {
        let RootPage { roots, next } = read(bench.store.roots(filter, after.or(from), n)).await;
        assert!(roots.len() <= n, "a page has at most {n} roots");
        (roots.iter().map(Shown::of).collect(), next)
    });
    pages.await.into_iter().flatten().collect()
}

async fn roots_are_filtered_and_paged(mut bench: Bench) {
    let mut roots = fill(&mut bench, 0..48).await;
    roots.reverse();
    // a generation of a step is not a root, whatever its trace says
    let origin = StepOrigin { execution_id: ExecutionId::trusted("e1"), path: Arc::from("ask") };
    record(&bench, with_steps(&GenerationRecord { origin: Some(origin), ..working("s") }, &[]))
        .await;
    for entity_type in [None, Some(EntityType::Agent), Some(EntityType::Workflow)] {
        for entity_id in [None, Some("clerk"), Some("order"), Some("nope")] {
            for visibility in
                [Visibility::Everything, Visibility::Of("u1".into()), Visibility::Nothing]
            {
                for from in [None, Some(Timestamp(1020))] {
                    let (entity_id, visibility) =
                        (entity_id.map(str::to_owned), visibility.clone());
                    let filter = RootFilter { entity_type, entity_id, visibility, from };
                    let wanted = roots.iter().filter(|root| root.matches(&filter));
                    let wanted: Vec<_> = wanted.cloned().collect();
                    for n in [1, 5, 100] {
                        let shown = walk(&bench, &filter, None, n).await;
                        assert_eq!(shown, wanted, "{filter:?} in pages of {n}");
                    }
                }
            }
        }
    }
}

async fn paging_is_stable_while_roots_are_added(mut bench: Bench) {
    let mut roots = fill(&mut bench, 0..20).await;
    roots.reverse();
    let filter = RootFilter::default();
    let first = read(bench.store.roots(&filter, None, 4)).await;
    fill(&mut bench, 20..30).await;
    let mut shown: Vec<_> = first.roots.iter().map(Shown::of).collect();
    assert!(first.next.is_some(), "more follow");
    shown.extend(walk(&bench, &filter, first.next, 3).await);
    assert_eq!(shown, roots, "each once");
}

async fn part(bench: &Bench, trace_id: &str, facts_max: usize) -> TraceRecord {
    sized(bench, trace_id, TraceSize::of_facts(facts_max)).await
}

async fn sized(bench: &Bench, trace_id: &str, most: TraceSize) -> TraceRecord {
    let query = TraceQuery { trace_id: trace_id.to_owned(), most, ..TraceQuery::default() };
    read(bench.store.trace(&query)).await
}

async fn found(bench: &Bench, trace_id: &str) -> TraceRecord {
    part(bench, trace_id, 1000).await
}

/// Returns the ids, executions before generations.
fn ids(found: &TraceRecord) -> Vec<String> {
    let executions = found.executions.iter().map(|(header, _)| header.id.to_string());
    executions.chain(found.generations.iter().map(|entry| entry.record.id.clone())).collect()
}

fn turn(text: &str) -> Arc<GenerationStep> {
    Arc::new(GenerationStep { text: text.to_owned(), ..GenerationStep::default() })
}

/// Adds an execution, a child with several appends, and a generation of two turns for a step.
async fn family(bench: &mut Bench) -> (Draft, Draft, GenerationRecord) {
    let parent = root(bench, &uuid(1), TraceOrigin::New);
    bench.take(&parent).await;
    let trace = parent.header.trace.below(span());
    let child = root(bench, &uuid(2), TraceOrigin::New);
    let child = Draft { header: with_trace(&child, &trace), ..child };
    bench.take(&child).await;
    let more = bench.continuation(&child, vec![step_started(2), held(3)]);
    bench.take(&more).await;
    let end = bench.continuation(&more, vec![completed(3)]);
    bench.take(&end).await;
    let execution_id = parent.header.id.clone();
    let origin = Some(StepOrigin { execution_id, path: Arc::from("ask") });
    let step = GenerationRecord { trace, origin, ..working("of a step") };
    record(bench, with_steps(&step, &[(0, turn("one"))])).await;
    record(bench, with_steps(&step, &[(1, turn("two"))])).await;
    (parent, child, step)
}

fn with_trace(draft: &Draft, trace: &Trace) -> Header {
    Header { trace: trace.clone(), ..draft.header.clone() }
}

async fn a_trace_contains_all_its_executions_and_generations(mut bench: Bench) {
    let (parent, child, step) = family(&mut bench).await;
    let agent = root_generation(&bench, &uuid(3), TraceOrigin::New);
    put(&bench, agent.clone()).await;
    let below = agent.record.trace.below(span());
    let called = root(&mut bench, "called by a tool", TraceOrigin::New);
    bench.take(&Draft { header: with_trace(&called, &below), ..called.clone() }).await;
    let asked = GenerationRecord { trace: below, ..working(&uuid(4)) };
    record(&bench, with_steps(&asked, &[])).await;
    let chosen = root(&mut bench, "chosen", TraceOrigin::New);
    bench.take(&chosen).await;

    let of_workflow = found(&bench, &parent.header.trace.id).await;
    assert_eq!(ids(&of_workflow), [&*uuid(1), &*uuid(2), &*step.id]);
    assert!(!of_workflow.is_cut);
    let (header, facts) = &of_workflow.executions[1];
    assert_eq!((&**header, numbers(facts)), (&with_trace(&child, &header.trace), vec![1, 2, 3, 3]));
    assert_eq!(header.trace, parent.header.trace.below(span()));
    let turns: Vec<_> = of_workflow.generations[0].steps.iter().map(|turn| &*turn.text).collect();
    assert_eq!((&of_workflow.generations[0].record, turns), (&step, vec!["one", "two"]));

    let of_agent = found(&bench, &agent.record.trace.id).await;
    assert_eq!(ids(&of_agent), [called.header.id.as_str(), &*uuid(3), &*uuid(4)]);
    assert_eq!(of_agent.generations[0].record, agent.record);
    assert_eq!(ids(&found(&bench, &own_trace_id("chosen")).await), ["chosen"]);
    for unknown in [&*own_trace_id(&uuid(2)), &own_trace_id("unknown"), "", "nope", &uuid(1)] {
        assert_eq!(found(&bench, unknown).await, TraceRecord::default(), "{unknown}");
    }
}

async fn one_traceparent_may_start_several_roots(mut bench: Bench) {
    let remote = || TraceOrigin::Remote(traceparent());
    for id in [uuid(1), "chosen".to_owned()] {
        let draft = root(&mut bench, &id, remote());
        bench.take(&draft).await;
    }
    put(&bench, root_generation(&bench, &uuid(2), remote())).await;
    // its own id would give this trace id, which another caller already uses
    let namesake = "0af76519-16cd-43dd-8448-eb211c80319c";
    let draft = root(&mut bench, namesake, remote());
    bench.take(&draft).await;
    let all = found(&bench, &traceparent().trace_id).await;
    assert_eq!(ids(&all), [&*uuid(1), "chosen", namesake, &*uuid(2)]);
    assert_eq!(walk(&bench, &RootFilter::default(), None, 10).await.len(), 4, "all are roots");
}

async fn the_size_of_a_trace_is_bounded(mut bench: Bench) {
    let (parent, ..) = family(&mut bench).await;
    // one fact of the parent, four of the child, the generation, its two turns
    let rows: [(usize, &[usize], &[usize]); 8] = [
        (0, &[], &[]),
        (1, &[1], &[]),
        (2, &[1, 1], &[]),
        (5, &[1, 4], &[]),
        (6, &[1, 4], &[0]),
        (7, &[1, 4], &[1]),
        (8, &[1, 4], &[2]),
        (9, &[1, 4], &[2]),
    ];
    for (facts_max, facts, turns) in rows {
        let part = part(&bench, &parent.header.trace.id, facts_max).await;
        let of_facts: Vec<_> = part.executions.iter().map(|(_, facts)| facts.len()).collect();
        let of_turns: Vec<_> = part.generations.iter().map(|entry| entry.steps.len()).collect();
        assert_eq!((&*of_facts, &*of_turns), (facts, turns), "at most {facts_max}");
        assert_eq!(part.is_cut, facts_max < 8, "at most {facts_max}");
    }

    let trace_id = &parent.header.trace.id;
    let all = found(&bench, trace_id).await;
    let first = of_fact(&all.executions[0].1[0].fact);
    let but_one = all.size.bytes - 1;
    for (bytes, count) in [(0, 0), (1, 1), (first, 1), (first + 1, 2), (but_one, 8)] {
        let part = sized(&bench, trace_id, TraceSize { facts: 100, bytes }).await;
        assert_eq!(part.size.facts, count, "at most {bytes} bytes");
        assert_eq!(part.is_cut, count < 8, "at most {bytes} bytes");
    }
}

/// Checks filters by user and root in a trace of several of each: unmatched content does not count
/// against the limit.
async fn unmatched_content_does_not_count_against_the_limit(mut bench: Bench) {
    let mut anchors = Vec::new();
    for (id, user) in [("one", "ann"), ("two", "ann"), ("three", "ben")] {
        let mut draft = root(&mut bench, id, TraceOrigin::Remote(traceparent()));
        draft.header.user_id = Some(user.into());
        anchors.push(draft.header.trace.anchor);
        bench.take(&draft).await;
    }
    let trace_id = traceparent().trace_id.to_string();
    let all = TraceQuery { trace_id, most: TraceSize::of_facts(1), ..TraceQuery::default() };
    let of = |user: &str| TraceQuery { visibility: Visibility::Of(user.into()), ..all.clone() };
    let from = |anchor| TraceQuery { anchor: Some(anchor), ..all.clone() };
    let nothing = TraceQuery { visibility: Visibility::Nothing, ..all.clone() };
    let rows: [(TraceQuery, &[&str]); 6] = [
        (all.clone(), &["one"]),
        (of("ann"), &["one"]),
        (of("ben"), &["three"]),
        (nothing, &[]),
        (from(anchors[1]), &["two"]),
        (from(anchors[2]), &["three"]),
    ];
    for (query, expected) in rows {
        let record = read(bench.store.trace(&query)).await;
        assert_eq!(ids(&record), expected, "{query:?}");
    }
}

async fn traces_are_found_by_row(mut bench: Bench) {
    let execution = root(&mut bench, &uuid(1), TraceOrigin::New);
    bench.take(&execution).await;
    let own = root_generation(&bench, &uuid(2), TraceOrigin::New);
    let remote = root_generation(&bench, &uuid(3), TraceOrigin::Remote(traceparent()));
    for write in [&own, &remote] {
        put(&bench, write.clone()).await;
    }
    let rows = [
        (RootRow::Execution(execution.row), Some(&execution.header.trace.id)),
        (RootRow::Generation(own.row), Some(&own.record.trace.id)),
        (RootRow::Generation(remote.row), Some(&remote.record.trace.id)),
        (RootRow::Execution(77), None),
        (RootRow::Generation(77), None),
    ];
    for (row, trace) in rows {
        assert_eq!(read(bench.store.trace_of(row)).await.as_ref(), trace, "{row:?}");
    }
}
