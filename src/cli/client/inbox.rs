//! `greenroom inbox`: what waits for a person, and answering it.

mod of_execution;

use std::time::Duration;

use clap::ValueEnum;
use greenroom_actors::ports::store::AskKind;
use serde_json::{Value, json};

use self::of_execution::known;
use super::api::Call;
use super::complete;
use super::exit::{Exit, Failure, quoted};
use super::follow::{Located, follow};
use super::problems::all_of;
use super::screen::fields;
use super::session::{Session, json_of, limit_of, put_text};
use super::show::Show;
use super::text::{cell, compact, plain, text};
use super::wait::{asked, how_to_answer};

/// Time for what follows an answer, before the command ends.
const OUTCOME_WAIT: Duration = Duration::from_secs(2);

/// Largest page of the list.
const PAGE_MAX: usize = 200;

/// Actions on asks.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub(in crate::cli) enum Action {
    /// Lists what waits for a person, the nearest deadline first.
    List(Filters),
    /// Shows an ask with what is needed to answer it.
    Show {
        /// Id of the ask.
        #[arg(add = complete::asks())]
        id: String,
    },
    /// Answers an ask; what waits for it continues.
    Answer(Answer),
    /// Claims an ask for a while: others see who is about to answer.
    Claim(Claim),
    /// Ends a claim.
    Release(Claimant),
}

/// Filters of the list.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Filters {
    /// Open ones, closed ones or all.
    #[arg(long, value_enum, default_value_t)]
    state: State,
    /// Only of this workflow.
    #[arg(long, value_name = "ID", add = complete::workflows())]
    workflow: Option<String>,
    /// Only of this agent.
    #[arg(long, value_name = "ID", add = complete::agents())]
    agent: Option<String>,
    /// Only of executions and generations of this user.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Only those that ask these: me, user:ID, role:NAME or none.
    #[arg(long, value_name = "WHO")]
    to: Option<String>,
    /// Only of this kind.
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Only those with a deadline before this time (2026-11-20T09:00:00Z, or a day in UTC).
    #[arg(long, value_name = "TIME")]
    due: Option<String>,
    /// Only those that a person has claimed, or only the others.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    claimed: Option<bool>,
    /// Most asks to list.
    #[arg(short = 'n', long, default_value_t = 50, value_parser = limit_of)]
    limit: usize,
}

/// Kind of asks, as the server names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Kind {
    /// By `suspend` of a step.
    Step,
    /// By the function of a step.
    Function,
    /// The compensation of a step has failed.
    Compensation,
    /// A tool runs only once a person approves the call.
    Approval,
    /// A tool asks a person for its result.
    Input,
}

impl Kind {
    fn of_asks(self) -> AskKind {
        match self {
            Self::Step => AskKind::Step,
            Self::Function => AskKind::Function,
            Self::Compensation => AskKind::Compensation,
            Self::Approval => AskKind::Approval,
            Self::Input => AskKind::Input,
        }
    }
}

/// State of asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum State {
    #[default]
    Open,
    Closed,
    All,
}

/// An ask, and who does something with it.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Claimant {
    /// Id of the ask.
    #[arg(add = complete::asks())]
    id: String,
    /// User who does it, if no token names one.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Pass over the claim of another user.
    #[arg(long)]
    force: bool,
}

/// Options of `answer`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["data", "approve", "refuse"])))]
pub(in crate::cli) struct Answer {
    #[command(flatten)]
    by: Claimant,
    /// The answer: JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON", add = complete::json_files())]
    data: Option<String>,
    /// The answer {"approved":true}.
    #[arg(long)]
    approve: bool,
    /// The answer {"approved":false}.
    #[arg(long)]
    refuse: bool,
    /// Reason beside --approve and --refuse, for approvals of tools.
    #[arg(long, value_name = "TEXT", conflicts_with = "data")]
    reason: Option<String>,
    /// Takes effect once however often the command is repeated with this key.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// Options of `claim`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Claim {
    #[command(flatten)]
    by: Claimant,
    /// Time after which the claim ends by itself, at most 24h.
    #[arg(long = "for", value_name = "DURATION", default_value = "30m")]
    lasts: String,
}

/// Runs an action.
pub(super) async fn run(session: &Session, action: &Action) -> Result<Exit, Failure> {
    let ask = match action {
        Action::List(filters) => return list(session, filters).await,
        Action::Show { id } => {
            let shown = session.api.data(Call::get(&["inbox", id])).await;
            known(session, id, "show", shown).await?
        }
        Action::Answer(answer) => {
            let given = give(session, answer).await;
            let ask = known(session, &answer.by.id, "answer", given).await?;
            session.screen.value(&ask, |ask| lines_of(ask, &session.addressing))?;
            tell_outcome(session, &ask["of"]).await;
            return Ok(Exit::Ok);
        }
        Action::Claim(Claim { by, lasts }) => {
            change(session, by, "claim", json!({ "for": lasts })).await?
        }
        Action::Release(by) => change(session, by, "release", json!({})).await?,
    };
    session.screen.value(&ask, |ask| lines_of(ask, &session.addressing))?;
    Ok(Exit::Ok)
}

async fn list(session: &Session, filters: &Filters) -> Result<Exit, Failure> {
    let state = match filters.state {
        State::Open => "open",
        State::Closed => "closed",
        State::All => "all",
    };
    let given = [
        ("state", Some(state)),
        ("workflowId", filters.workflow.as_deref()),
        ("agentId", filters.agent.as_deref()),
        ("userId", filters.user.as_deref()),
        ("to", filters.to.as_deref()),
        ("kind", filters.kind.map(|kind| kind.of_asks().as_str())),
        ("due", filters.due.as_deref()),
        ("claimed", filters.claimed.map(|is_claimed| if is_claimed { "true" } else { "false" })),
    ];
    let query: Vec<_> = given.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let asks =
        session.pages(&["inbox"], &query, "asks", (filters.limit, PAGE_MAX), |_| true).await?;
    let nothing = "nothing waits for a person";
    match filters.state {
        // a deadline is over once an ask is closed
        State::Open => {
            session.screen.list(&asks, head("DEADLINE"), |it| row(it, "deadline"), nothing)
        }
        State::Closed => {
            session.screen.list(&asks, head("CLOSED"), |it| row(it, "closedAt"), nothing)
        }
        State::All => {
            let [ask, kind, state, since, closed, asks_whom, of, reason] = head("CLOSED");
            let head = [ask, kind, state, since, "DEADLINE", closed, asks_whom, of, reason];
            session.screen.list(&asks, head, row_of_all, nothing)
        }
    }?;
    Ok(Exit::Ok)
}

/// Returns the head of a list of asks. `until`: the column with their ends.
fn head(until: &'static str) -> [&'static str; 8] {
    ["ASK", "KIND", "STATE", "SINCE", until, "ASKS", "OF", "REASON"]
}

/// Returns the cells of an ask. `until`: the key of its end.
fn row(ask: &Value, until: &str) -> [String; 8] {
    let [id, kind, state, since, until, reason] =
        ["askId", "kind", "state", "openedAt", until, "reason"].map(|key| cell(&ask[key]));
    [id, kind, state, since, until, asked(ask), of(ask), reason]
}

/// Returns the cells of an ask among open and closed ones: its deadline while it is open, and when it
/// was closed.
fn row_of_all(ask: &Value) -> [String; 9] {
    let [id, kind, state, since, closed, asked, of, reason] = row(ask, "closedAt");
    let deadline = if ask["state"] == "open" { &ask["deadline"] } else { &Value::Null };
    [id, kind, state, since, cell(deadline), closed, asked, of, reason]
}

/// Returns what waits: the step of an execution, or the tool of an agent.
fn of(ask: &Value) -> String {
    let of = &ask["of"];
    let parts = match text(of, "workflowId") {
        "" => [text(of, "agentId"), text(of, "toolName")],
        _ => [text(of, "executionId"), text(of, "path")],
    };
    plain(&parts.join(" "))
}

async fn give(session: &Session, answer: &Answer) -> Result<Value, Failure> {
    let mut body = match &answer.data {
        Some(data) => json!({ "data": json_of("--data", data)? }),
        None => json!({ "data": { "approved": answer.approve } }),
    };
    put_text(&mut body["data"], "reason", answer.reason.as_ref());
    let key = answer.idempotency_key.as_deref();
    let headers: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
    let body = of_caller(&answer.by, body);
    let path = ["inbox", answer.by.id.as_str(), "answer"];
    match session.api.data(Call::post(&path, &body).headers(&headers)).await {
        Err(failure) if failure.is_refused_as("answer_invalid") => {
            let ask = session.api.data(Call::get(&["inbox", &answer.by.id])).await?;
            Err(all_of(failure, &ask["schema"], &body["data"]))
        }
        given => given,
    }
}

/// Says what came of an answer: how the execution is a moment later, or where the agent's answer
/// will be. One who answers may not see either.
async fn tell_outcome(session: &Session, of: &Value) {
    let step = if of["step"].is_object() { &of["step"] } else { of };
    let (workflow, id) = (text(step, "workflowId"), text(step, "executionId"));
    if workflow.is_empty() {
        let (agent, generation) = (quoted(text(of, "agentId")), quoted(text(of, "generationId")));
        return session.note(&format!("it continues: greenroom agents watch {agent} {generation}"));
    }
    let at = Located { workflow: workflow.to_owned(), id: id.to_owned() };
    let Ok(state) = at.state(&session.api).await else { return };
    let history = state["lastSequence"].as_u64().unwrap_or(0);
    let mut nothing = Show::Nothing;
    let following = follow(&session.api, &at, history, &mut nothing);
    // one that works for longer is followed by the next command
    let _ = tokio::time::timeout(OUTCOME_WAIT, following).await;
    let Ok(state) = at.state(&session.api).await else { return };
    let (status, id) = (text(&state, "status"), quoted(id));
    let more = match status {
        "running" => format!("watch {id}"),
        "completed" => format!("show {id}"),
        _ => format!("why {id}"),
    };
    session.note(&format!("{workflow} {id} is {status}: greenroom executions {more}"));
}

async fn change(
    session: &Session,
    by: &Claimant,
    command: &str,
    body: Value,
) -> Result<Value, Failure> {
    let body = of_caller(by, body);
    let changed = session.api.data(Call::post(&["inbox", &by.id, command], &body)).await;
    known(session, &by.id, command, changed).await
}

/// Adds to a body who sends it.
fn of_caller(by: &Claimant, mut body: Value) -> Value {
    if by.force {
        body["force"] = json!(true);
    }
    body["options"] = json!({});
    put_text(&mut body["options"], "userId", by.user.as_ref());
    body
}

/// Shows an ask for people.
fn lines_of(ask: &Value, addressing: &str) -> Vec<String> {
    let present = |key: &str| match &ask[key] {
        Value::Null => String::new(),
        value => compact(value),
    };
    let mut lines = fields(&[
        ("ask", cell(&ask["askId"])),
        ("kind", cell(&ask["kind"])),
        ("state", cell(&ask["state"])),
        ("of", of(ask)),
        ("reason", cell(&ask["reason"])),
        ("asks", asked(ask)),
        ("claimed by", cell(&ask["claimedBy"])),
        ("claimed until", cell(&ask["claimedUntil"])),
        ("opened", cell(&ask["openedAt"])),
        ("deadline", cell(&ask["deadline"])),
        ("closed", cell(&ask["closedAt"])),
        ("shows", present("payload")),
        ("schema", present("schema")),
        ("answer", present("data")),
        ("answered by", cell(&ask["answeredBy"]["id"])),
    ]);
    if ask["state"] == "open" && ask.get("schema").is_some() {
        let id = plain(&quoted(text(ask, "askId")));
        let how = how_to_answer(text(ask, "kind"), &ask["schema"]);
        lines.push(String::new());
        lines.push(format!("to answer: greenroom{addressing} inbox answer {id} {how}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_ask_says_how_to_answer_it() {
        let ask = json!({
            "askId": "ask_1", "kind": "step", "state": "open", "reason": "yes?\u{1b}", "to": [],
            "of": { "workflowId": "w", "executionId": "e", "path": "a/b" }, "claimedBy": null,
            "payload": { "n": 1 }, "schema": null,
        });
        let lines = lines_of(&ask, "");
        assert_eq!(lines[3..5], ["of             e a/b", "reason         yes?\\u{1b}"]);
        assert_eq!(lines[5], "shows          {\"n\":1}");
        assert!(lines.last().unwrap().ends_with("greenroom inbox answer ask_1 --data JSON"));
    }

    #[test]
    fn open_and_closed_asks_have_their_deadline_and_their_end() {
        let ask = |state: &str, closed: Value| {
            row_of_all(&json!({
                "askId": "ask_1", "kind": "step", "state": state, "reason": "yes?", "to": [],
                "of": { "workflowId": "w", "executionId": "e", "path": "a" },
                "openedAt": "T1", "deadline": "T2", "closedAt": closed,
            }))
        };
        let open = ask("open", Value::Null);
        let closed = ask("answered", json!("T3"));
        assert_eq!([&open[2], &open[3], &open[4], &open[5]], ["open", "T1", "T2", "-"]);
        assert_eq!([&closed[2], &closed[3], &closed[4], &closed[5]], ["answered", "T1", "-", "T3"]);
    }
}
