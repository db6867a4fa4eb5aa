//! What every store keeps of agents.

use serde_json::json;

use super::{Bench, read};
use crate::domain::time::Timestamp;
use crate::ports::model::Usage;
use crate::ports::store::{GenerationRecord, GenerationStatus, GenerationWrite};

/// A record without steps and messages.
fn alone(record: &GenerationRecord) -> GenerationWrite {
    GenerationWrite { record: record.clone(), steps: Vec::new(), messages: None }
}

fn generation(id: &str, agent: &str, start: i64) -> GenerationRecord {
    GenerationRecord {
        id: id.to_owned(),
        agent_id: agent.to_owned(),
        status: GenerationStatus::Working,
        start_time: Timestamp(start),
        end_time: None,
        input: json!([{ "role": "user", "content": "hi" }]),
        output: None,
        usage: None,
        error: None,
        user_id: None,
        conversation_id: None,
        origin: None,
    }
}

pub(super) async fn generations_are_recorded(bench: Bench) {
    let mut done = generation("g1", "clerk", 100);
    let later = generation("g2", "clerk", 200);
    let same_time = generation("g3", "clerk", 200);
    for record in [&done, &later, &same_time, &generation("g4", "other", 300)] {
        let written = bench.store.record_generation(alone(record)).await;
        assert_eq!(written, Ok(()), "record {}", record.id);
    }
    done.status = GenerationStatus::Completed;
    done.end_time = Some(Timestamp(150));
    done.output = Some(json!({ "text": "hello" }));
    done.usage = Some(Usage { total_tokens: 3, ..Usage::default() });
    done.user_id = Some("u1".to_owned());
    done.conversation_id = Some("c1".to_owned());
    assert_eq!(bench.store.record_generation(alone(&done)).await, Ok(()), "newest wins");
    let page = async |offset, limit| {
        let page = read(bench.store.generations("clerk", offset, limit)).await;
        assert_eq!(page.total, 3, "of all pages");
        page.entries.into_iter().map(|entry| entry.record).collect::<Vec<_>>()
    };
    let newest_first = [same_time.clone(), later.clone(), done.clone()];
    assert_eq!(page(0, 10).await, newest_first, "newest first");
    assert_eq!(page(1, 1).await, newest_first[1..2], "a page");
    assert!(page(3, 10).await.is_empty(), "beyond the end");

    assert_eq!(bench.store.interrupt_working(Timestamp(999)).await, Ok(()), "interrupt");
    let interrupted = |mut record: GenerationRecord| {
        record.status = GenerationStatus::Error;
        record.end_time = Some(Timestamp(999));
        record.error = Some("interrupted by a restart".to_owned());
        record
    };
    let after = [interrupted(same_time), interrupted(later), done];
    assert_eq!(page(0, 10).await, after, "what worked has failed, what had ended stays");
}
