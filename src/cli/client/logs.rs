//! `greenroom logs`: the log of a server, as it is written.

use chrono::{DateTime, SecondsFormat};
use clap::builder::PossibleValuesParser;
use futures_util::StreamExt as _;
use greenroom_actors::observe::log_record::LogLevel;
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::api::Call;
use super::attempts::Attempts;
use super::complete;
use super::events::painted;
use super::exit::{Exit, Failure};
use super::find::existing;
use super::screen::Form;
use super::session::{Session, attended};
use super::text::{compact, items, plain, pretty, text};

/// Most records that one request returns.
const PAGE_MAX: u64 = 1_000;

/// Most records of the time without a connection.
const MISSED_MAX: &str = "1000";

/// Key of the handshake. Servers answer it; nothing here depends on its value.
const HANDSHAKE_KEY: &str = "Z3JlZW5yb29tLWxvZ3MtMQ==";

/// Options of `logs`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Logs {
    #[command(flatten)]
    pub(super) options: super::settings::Options,
    /// Continue with new records until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    /// Lowest level.
    #[arg(short, long, value_parser = PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::as_str)))]
    level: Option<String>,
    /// Only of this workflow.
    #[arg(long, value_name = "ID", add = complete::workflows())]
    workflow: Option<String>,
    /// Only of this execution.
    #[arg(long, value_name = "ID", add = complete::executions())]
    execution: Option<String>,
    /// Only of this agent.
    #[arg(long, value_name = "ID", add = complete::agents())]
    agent: Option<String>,
    /// Only from this time on, as 2026-11-27 or 2026-11-27T08:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Most recorded lines to show; with 0 and --follow only new ones are shown.
    #[arg(short = 'n', long, default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(..=PAGE_MAX))]
    limit: u64,
}

/// Shows the log.
pub(super) async fn run(session: &Session, logs: &Logs) -> Result<Exit, Failure> {
    let limit = logs.limit.to_string();
    let given = [
        ("level", logs.level.as_deref()),
        ("workflowId", logs.workflow.as_deref()),
        ("executionId", logs.execution.as_deref()),
        ("agentId", logs.agent.as_deref()),
        ("since", logs.since.as_deref()),
        // the server refuses zero: what it sends is left out here
        ("limit", Some(limit.as_str()).filter(|limit| *limit != "0")),
    ];
    let query: Vec<_> = given.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    if logs.follow {
        let following = follow(session, &query, logs.limit > 0);
        return attended(following, None, |exit| Failure::new(exit, "interrupted")).await;
    }
    let page = session.api.reply(Call::get(&["api", "logs"]).query(&query)).await?;
    let entries = items(&page.body, "data");
    if entries.is_empty() {
        check_names(session, logs).await?;
    }
    let entries = if logs.limit > 0 { entries } else { &[] };
    match session.screen.form {
        Form::Json => session.screen.line(&pretty(&Value::from(entries)))?,
        Form::Jsonl | Form::Table => show(session, entries)?,
    }
    Ok(Exit::Ok)
}

/// Fails if a filter names something that is not there, and so cannot have records.
async fn check_names(session: &Session, logs: &Logs) -> Result<(), Failure> {
    let Logs { workflow, execution, agent, .. } = logs;
    if let Some(id) = execution {
        existing(&session.api, id, workflow.as_ref()).await?;
    } else if let Some(id) = workflow {
        session.api.data(Call::get(&["workflows", id])).await?;
    }
    if let Some(id) = agent {
        session.api.data(Call::get(&["agents", id])).await?;
    }
    Ok(())
}

/// Follows the log until the command is interrupted, over lost connections. Begins with what was
/// recorded before, if that is wanted.
async fn follow(
    session: &Session,
    query: &[(&str, &str)],
    with_history: bool,
) -> Result<Exit, Failure> {
    let mut tail = Tail::default();
    let mut attempts = Attempts::default();
    loop {
        let begin = tail.begin.clone();
        let mut again: Vec<_> = query.to_vec();
        // the history of a later connection is what was missed
        let is_shown = with_history || !begin.is_empty();
        if !begin.is_empty() {
            again.retain(|(key, _)| !matches!(*key, "since" | "limit"));
            again.extend([("since", begin.as_str()), ("limit", MISSED_MAX)]);
        }
        let seen = tail.seen;
        let ended = read(session, &again, is_shown, &mut tail, &mut attempts).await;
        if tail.seen > seen {
            attempts.begin_anew();
        }
        attempts.pause(ended).await?;
    }
}

/// Reads the log over a WebSocket until that is closed, or lost.
async fn read(
    session: &Session,
    query: &[(&str, &str)],
    with_history: bool,
    tail: &mut Tail,
    attempts: &mut Attempts,
) -> Result<(), Failure> {
    let headers = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", HANDSHAKE_KEY),
    ];
    let call = Call::get(&["ws", "logs"]).query(query).headers(&headers).stream();
    let response = session.api.open(call).await?;
    if tail.begin.is_empty() {
        tail.begin = time_of(response.headers());
    }
    let upgraded = response.upgrade().await.map_err(|error| session.api.unreachable(&error))?;
    let mut frames = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
    let silence = session.api.silence();
    let opened = Instant::now();
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(silence, frames.next()).await {
        attempts.note_stream(opened.elapsed());
        let Message::Text(frame) = frame else { continue };
        let frame: Value = serde_json::from_str(&frame).unwrap_or_default();
        if text(&frame, "type") == "ERROR" {
            return Err(Failure::new(Exit::Failed, text(&frame, "error")));
        }
        let is_history = text(&frame, "type") == "initial";
        // also what is not shown is noted, so that another connection does not show it either
        let unseen = tail.unseen(items(&frame, "logs"), is_history);
        if with_history || !is_history {
            show(session, &unseen)?;
        }
    }
    Ok(())
}

/// Returns the time of an answer; an empty text if it has none.
fn time_of(headers: &HeaderMap) -> String {
    let date = headers.get("date").and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
    date.map(|date| date.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true)).unwrap_or_default()
}

/// End of what was shown of a log, from which another connection continues.
#[derive(Debug, Default)]
struct Tail {
    /// Time of the last entry, or of the first connection.
    begin: String,
    /// Entries of that time, which another connection gets again.
    last: Vec<Value>,
    seen: usize,
}

impl Tail {
    /// Returns the entries that were not shown before, and notes them. Those of a history begin
    /// with the ones of the last time that was seen.
    fn unseen(&mut self, entries: &[Value], is_history: bool) -> Vec<Value> {
        let mut known = if is_history { self.last.clone() } else { Vec::new() };
        let mut unseen = Vec::new();
        for entry in entries {
            if let Some(place) = known.iter().position(|known| known == entry) {
                known.swap_remove(place);
                continue;
            }
            let time = text(entry, "timestamp");
            if time != self.begin {
                time.clone_into(&mut self.begin);
                self.last.clear();
            }
            self.last.push(entry.clone());
            unseen.push(entry.clone());
        }
        self.seen += unseen.len();
        unseen
    }
}

fn show(session: &Session, entries: &[Value]) -> Result<(), Failure> {
    for entry in entries {
        match session.screen.form {
            Form::Json | Form::Jsonl => session.screen.line(&compact(entry))?,
            Form::Table => session.screen.line(&line_of(session, entry))?,
        }
    }
    Ok(())
}

/// Returns an entry as a line: its time, level and message, and the ids that it has.
fn line_of(session: &Session, entry: &Value) -> String {
    let level = text(entry, "level");
    let mut line = plain(text(entry, "timestamp"));
    line.push_str("  ");
    line.push_str(&painted(&session.screen, level, &format!("{:5}", plain(level))));
    line.push_str("  ");
    line.push_str(&plain(text(entry, "msg")));
    for key in ["workflowId", "executionId", "agentId", "userId"] {
        let id = text(entry, key);
        if !id.is_empty() {
            line.push_str(&format!("  {key}={}", plain(id)));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_connection_repeats_nothing() {
        let entry = |time: &str, msg: &str| json!({ "timestamp": time, "msg": msg });
        let mut tail = Tail::default();
        let first = [entry("1", "a"), entry("2", "b"), entry("2", "b")];
        assert_eq!(tail.unseen(&first, true), first);
        assert_eq!(tail.unseen(&[entry("2", "b")], false), [entry("2", "b")], "a live one is new");
        let again = [entry("2", "b"), entry("2", "b"), entry("2", "b"), entry("2", "c")];
        assert_eq!(tail.unseen(&again, true), [entry("2", "c")]);
        assert_eq!((tail.begin.as_str(), tail.last.len(), tail.seen), ("2", 4, 5));
    }
}
