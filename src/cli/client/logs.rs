//! `greenroom logs`: the log of a server, as it is written.

use clap::builder::PossibleValuesParser;
use futures_util::StreamExt as _;
use greenroom_actors::observe::log_record::LogLevel;
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::api::Call;
use super::complete;
use super::events::painted;
use super::exit::{Exit, Failure};
use super::screen::Form;
use super::session::{Session, attended};
use super::text::{compact, items, plain, pretty, text};

/// Most records that one request returns.
const PAGE_MAX: usize = 1_000;

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
    /// Most recorded lines to show.
    #[arg(short = 'n', long, default_value_t = 100)]
    limit: usize,
}

/// Shows the log.
pub(super) async fn run(session: &Session, logs: &Logs) -> Result<Exit, Failure> {
    let limit = logs.limit.min(PAGE_MAX).to_string();
    let given = [
        ("level", logs.level.as_deref()),
        ("workflowId", logs.workflow.as_deref()),
        ("executionId", logs.execution.as_deref()),
        ("agentId", logs.agent.as_deref()),
        ("since", logs.since.as_deref()),
        // zero would be refused; with `follow` it shows new ones only
        ("limit", Some(limit.as_str()).filter(|limit| *limit != "0")),
    ];
    let query: Vec<_> = given.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    if logs.follow {
        let following = follow(session, &query);
        return attended(following, None, |exit| Failure::new(exit, "interrupted")).await;
    }
    let page = session.api.reply(Call::get(&["api", "logs"]).query(&query)).await?;
    let entries = items(&page.body, "data");
    match session.screen.form {
        Form::Json => session.screen.line(&pretty(&Value::from(entries)))?,
        Form::Jsonl | Form::Table => show(session, entries)?,
    }
    Ok(Exit::Ok)
}

/// Reads the log over a WebSocket until the server closes it.
async fn follow(session: &Session, query: &[(&str, &str)]) -> Result<Exit, Failure> {
    let headers = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", HANDSHAKE_KEY),
    ];
    let call = Call::get(&["ws", "logs"]).query(query).headers(&headers).long();
    let response = session.api.open(call).await?;
    let upgraded = response.upgrade().await.map_err(|error| session.api.unreachable(&error))?;
    let mut frames = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
    while let Some(Ok(frame)) = frames.next().await {
        let Message::Text(frame) = frame else { continue };
        let frame: Value = serde_json::from_str(&frame).unwrap_or_default();
        if text(&frame, "type") == "ERROR" {
            return Err(Failure::new(Exit::Failed, text(&frame, "error")));
        }
        show(session, items(&frame, "logs"))?;
    }
    Err(Failure::new(Exit::Failed, "the server has closed the log")
        .advise("run the command again, with --since and the time of the last line"))
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
