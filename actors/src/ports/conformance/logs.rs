//! Rules of log records.

use std::sync::Arc;

use serde_json::json;

use super::bench::Bench;
use super::{pages, read};
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::observe::log_record::{LogLevel, LogRecord, LogScope};
use crate::ports::store::{LogFilter, LogPage};
use crate::visibility::Visibility;

pub(super) async fn run(bench: &impl AsyncFn() -> Bench) {
    rule!(records_are_stored_whole, bench().await);
    rule!(records_are_filtered_and_paged, bench().await);
    rule!(the_oldest_are_pruned, bench().await);
    rule!(records_about_a_user_are_forgotten, bench().await);
}

fn plain(number: i64) -> LogRecord {
    LogRecord {
        at: Timestamp(1000 + number),
        level: LogLevel::ALL[number as usize % LogLevel::ALL.len()],
        target: Arc::from("greenroom::web"),
        message: format!("record {number}"),
        attributes: Vec::new(),
        scope: Arc::default(),
    }
}

/// Returns a record with a mixture of ids that depends on the number.
fn various(number: i64) -> LogRecord {
    let id = |every: i64, name: &str| {
        (number % every == 0).then(|| Arc::from(format!("{name}{}", number % 2)))
    };
    let scope = LogScope {
        trace_id: id(2, "trace"),
        span_id: (number % 4 == 0).then(|| "b7ad6b7169203331".parse().expect("a span id")),
        execution_id: id(3, "e").map(ExecutionId::trusted),
        parent_execution_id: id(5, "e").map(ExecutionId::trusted),
        workflow_id: id(3, "order"),
        generation_id: id(7, "g"),
        agent_id: id(4, "clerk"),
        conversation_id: id(6, "c"),
        user_id: id(2, "u"),
        request_id: id(1, "r"),
        root_type: None,
        root_id: None,
    };
    LogRecord { scope: Arc::new(scope), ..plain(number) }
}

async fn write(bench: &Bench, records: impl IntoIterator<Item = LogRecord>) {
    let batch = records.into_iter().map(Arc::new).collect();
    assert_eq!(bench.store.write_logs(batch).await, Ok(()), "write");
}

/// Reads all matching records, in pages.
async fn all(bench: &Bench, filter: &LogFilter, limit: usize) -> Vec<LogRecord> {
    let pages = pages::every("log records", async |before| {
        let LogPage { records, older } = read(bench.store.logs(filter, before, limit)).await;
        assert!(records.len() <= limit, "a page has at most {limit} records");
        (records, older)
    });
    pages.await.into_iter().rev().flatten().collect()
}

async fn records_are_stored_whole(bench: Bench) {
    assert_eq!(read(bench.store.log_count()).await, 0, "nothing is kept at first");
    assert_eq!(all(&bench, &LogFilter::default(), 10).await, []);
    let mut full = various(0);
    full.scope = Arc::new(LogScope {
        trace_id: Some("0af7651916cd43dd8448eb211c80319c".into()),
        ..(*full.scope).clone()
    });
    full.message = "grün \u{0000} 👋\nsecond line".to_owned();
    full.attributes = vec![
        ("z".to_owned(), json!({ "deep": [1, null, "two"] })),
        ("a".to_owned(), json!(1.5)),
        ("z".to_owned(), json!("again")),
    ];
    let mut empty = plain(1);
    empty.message = String::new();
    write(&bench, [full.clone(), empty.clone()]).await;
    write(&bench, []).await;
    assert_eq!(all(&bench, &LogFilter::default(), 10).await, [full, empty]);
    assert_eq!(read(bench.store.log_count()).await, 2);
}

async fn records_are_filtered_and_paged(bench: Bench) {
    let records: Vec<_> = (0..120).map(various).collect();
    for batch in records.chunks(50) {
        write(&bench, batch.to_vec()).await;
    }
    let text = |text: &str| Some(text.to_owned());
    let none = LogFilter::default;
    let filters = [
        none(),
        LogFilter { level: Some(LogLevel::Warn), ..none() },
        LogFilter { level_max: Some(LogLevel::Debug), ..none() },
        LogFilter { level: Some(LogLevel::Info), level_max: Some(LogLevel::Info), ..none() },
        LogFilter { agent_id: text("clerk0"), ..none() },
        LogFilter { workflow_id: text("order1"), ..none() },
        LogFilter { execution_id: text("e1"), ..none() },
        LogFilter { execution_id: text("e0"), level: Some(LogLevel::Info), ..none() },
        LogFilter { execution_id: text("e0"), trace_id: text("trace0"), ..none() },
        LogFilter { conversation_id: text("c0"), ..none() },
        LogFilter { trace_id: text("trace0"), ..none() },
        LogFilter { trace_id: text("nope"), ..none() },
        LogFilter { span_id: "b7ad6b7169203331".parse().ok(), ..none() },
        LogFilter { span_id: "b7ad6b7169203332".parse().ok(), ..none() },
        LogFilter { since: Some(Timestamp(1030)), until: Some(Timestamp(1031)), ..none() },
        LogFilter { since: Some(Timestamp(1110)), trace_id: text("trace0"), ..none() },
        LogFilter { visibility: Visibility::Of("u0".into()), ..none() },
        LogFilter { visibility: Visibility::Of("u0".into()), execution_id: text("e1"), ..none() },
        LogFilter { visibility: Visibility::Nothing, ..none() },
    ];
    for filter in filters {
        let wanted = records.iter().filter(|record| filter.admits(record));
        let wanted: Vec<_> = wanted.cloned().collect();
        for limit in [1, 7, 200] {
            let found = all(&bench, &filter, limit).await;
            assert_eq!(found, wanted, "{filter:?} in pages of {limit}");
        }
    }
    let newest = read(bench.store.logs(&none(), None, 2)).await.records;
    assert_eq!(newest, records[118..], "a page is of the newest, oldest first");
}

async fn the_oldest_are_pruned(bench: Bench) {
    write(&bench, (0..100).map(plain)).await;
    let prune = |before, rows_max| bench.store.prune_logs(Timestamp(before), rows_max);
    let rows = [(0, 1000, 0), (1010, 1000, 10), (0, 70, 20), (1040, 65, 10), (0, 0, 60), (0, 0, 0)];
    for (before, rows_max, dropped) in rows {
        assert_eq!(prune(before, rows_max).await, Ok(dropped), "before {before}, {rows_max} rows");
        let left = all(&bench, &LogFilter::default(), 1000).await;
        assert_eq!(read(bench.store.log_count()).await, left.len() as u64);
        assert!(left.iter().all(|record| record.at >= Timestamp(before)));
    }
    write(&bench, [plain(7)]).await;
    assert_eq!(all(&bench, &LogFilter::default(), 10).await, [plain(7)]);
}

async fn records_about_a_user_are_forgotten(bench: Bench) {
    write(&bench, (0..40).map(various)).await;
    assert_eq!(bench.store.forget_user("u0".to_owned()).await, Ok(0), "no conversations");
    let left = (0..40).map(various).filter(|record| record.scope.user_id.is_none());
    assert_eq!(all(&bench, &LogFilter::default(), 7).await, left.collect::<Vec<_>>());
    let of_user = LogFilter { visibility: Visibility::Of("u0".into()), ..LogFilter::default() };
    assert_eq!(all(&bench, &of_user, 7).await, []);
}
