//! `greenroom agents`: asking agents, once or in a conversation.

mod approve;
mod chat;
mod generation;
mod settle;

use std::time::Duration;

use serde_json::{Value, json};

use self::generation::{Outcome, generate};
use super::api::Call;
use super::complete;
use super::exit::{Exit, Failure};
use super::screen::{Form, fields};
use super::session::{Session, attended, deadline_of, duration_of, json_of, put_text, stdin};
use super::text::{cell, items, plain_lines, pretty, text};

/// Actions on agents.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub(in crate::cli) enum Action {
    /// Lists the agents.
    List,
    /// Shows an agent with its tools.
    Show {
        /// Id of the agent.
        #[arg(add = complete::agents())]
        id: String,
    },
    /// Asks an agent once, and prints its answer as it comes.
    Run {
        #[command(flatten)]
        prompt: Prompt,
        #[command(flatten)]
        memory: Memory,
    },
    /// Talks with an agent: each line of stdin is a message. Ctrl-C stops an answer, Ctrl-D ends.
    Chat {
        /// Id of the agent.
        #[arg(add = complete::agents())]
        id: String,
        #[command(flatten)]
        memory: Memory,
    },
    /// Waits for the answer of a generation that waited for a person, and prints it.
    Watch {
        /// Id of the agent.
        #[arg(add = complete::agents())]
        agent: String,
        /// Id of the generation.
        generation: String,
        /// Stop watching after this time, as 30s or 5m, with exit code 124.
        #[arg(long, value_name = "DURATION", value_parser = duration_of)]
        timeout: Option<Duration>,
    },
    /// Asks an agent for an object that fits a JSON Schema.
    Object {
        #[command(flatten)]
        prompt: Prompt,
        /// The schema: JSON, @FILE, or - for stdin.
        #[arg(short, long, value_name = "JSON", add = complete::json_files())]
        schema: String,
        #[command(flatten)]
        memory: Memory,
    },
}

/// An agent, and a message for it.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Prompt {
    /// Id of the agent.
    #[arg(add = complete::agents())]
    id: String,
    /// The message, or - for stdin.
    text: String,
    /// Stop the answer after this time, as 30s or 5m, with exit code 124.
    #[arg(long, value_name = "DURATION", value_parser = duration_of)]
    timeout: Option<Duration>,
}

/// Conversation and user of a message.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Memory {
    /// Conversation that the server stores.
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// User of the conversation, if no token names one.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
}

impl Prompt {
    fn text(&self) -> Result<String, Failure> {
        if self.text != "-" {
            return Ok(self.text.clone());
        }
        let mut text = stdin().map_err(|why| Failure::usage(format!("stdin: {why}")))?;
        // the end of the last line is that of the file, not of what is asked
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
        Ok(text)
    }
}

impl Memory {
    /// Returns `options` of a request.
    fn options(&self) -> Value {
        let mut options = json!({});
        put_text(&mut options, "conversationId", self.conversation.as_ref());
        put_text(&mut options, "userId", self.user.as_ref());
        options
    }

    /// Returns `options` of an answer.
    fn caller(&self) -> Value {
        let mut options = json!({});
        put_text(&mut options, "userId", self.user.as_ref());
        options
    }
}

/// Runs an action.
pub(super) async fn run(session: &Session, action: &Action) -> Result<Exit, Failure> {
    match action {
        Action::List => list(session).await,
        Action::Show { id } => {
            let agent = session.api.data(Call::get(&["agents", id])).await?;
            session.screen.value(&agent, lines_of)?;
            Ok(Exit::Ok)
        }
        Action::Run { prompt, memory } => ask(session, prompt, memory).await,
        Action::Chat { id, memory } => chat::run(session, id, memory).await,
        Action::Watch { agent, generation, timeout } => {
            settle::watch(session, agent, generation, *timeout).await
        }
        Action::Object { prompt, schema, memory } => object(session, prompt, schema, memory).await,
    }
}

async fn list(session: &Session) -> Result<Exit, Failure> {
    let agents = session.api.data(Call::get(&["agents"])).await?;
    let agents = agents.as_array().map_or(&[][..], Vec::as_slice);
    let cells = |it: &Value| {
        let (id, status) = (cell(&it["id"]), cell(&it["status"]));
        let tools = items(it, "tools").len().to_string();
        [id, status, cell(&it["model"]), tools, cell(&it["description"])]
    };
    let head = ["ID", "STATUS", "MODEL", "TOOLS", "DESCRIPTION"];
    session.screen.list(agents, head, cells, "the server has no agents")?;
    Ok(Exit::Ok)
}

/// Shows an agent for people.
fn lines_of(agent: &Value) -> Vec<String> {
    let subs: Vec<_> = items(agent, "subAgents").iter().map(|it| cell(&it["id"])).collect();
    let memory = if agent["memory"].is_null() { "no" } else { "yes" };
    let mut lines = fields(&[
        ("id", cell(&agent["id"])),
        ("name", cell(&agent["name"])),
        ("description", cell(&agent["description"])),
        ("status", cell(&agent["status"])),
        ("model", cell(&agent["model"])),
        ("memory", memory.to_owned()),
        ("sub-agents", subs.join(", ")),
    ]);
    let tools = items(agent, "toolDetails");
    if !tools.is_empty() {
        lines.push("tools".to_owned());
    }
    for tool in tools {
        lines.push(format!("  {}  {}", cell(&tool["name"]), cell(&tool["description"])));
    }
    lines
}

async fn ask(session: &Session, prompt: &Prompt, memory: &Memory) -> Result<Exit, Failure> {
    let body = json!({ "input": prompt.text()?, "options": memory.options() });
    if session.screen.form == Form::Json {
        let path = ["agents", prompt.id.as_str(), "text"];
        // the server cancels an answer whose client disconnects
        let asking = session.api.data(Call::post(&path, &body).long());
        let answer = attended(asking, deadline_of(prompt.timeout), stopped).await?;
        session.screen.value(&answer, |_| Vec::new())?;
        return if text(&answer, "status") == "suspended" {
            let id = text(&answer, "generationId");
            Err(generation::waiting(&prompt.id, id, items(&answer, "asks")))
        } else {
            Ok(Exit::Ok)
        };
    }
    match generate(session, &prompt.id, &body, prompt.timeout).await? {
        Outcome::Answered { .. } => Ok(Exit::Ok),
        Outcome::Waiting { generation, asks } => {
            Err(generation::waiting(&prompt.id, &generation, &asks))
        }
        Outcome::Stopped(exit) => Err(stopped(exit)),
    }
}

/// Returns the failure of a command that no longer waits for an answer.
fn stopped(exit: Exit) -> Failure {
    let why = if exit == Exit::Timeout { "time is over" } else { "interrupted" };
    Failure::new(exit, format!("{why}; the answer is stopped"))
}

async fn object(
    session: &Session,
    prompt: &Prompt,
    schema: &str,
    memory: &Memory,
) -> Result<Exit, Failure> {
    let schema = json_of("--schema", schema)?;
    let body = json!({ "input": prompt.text()?, "schema": schema, "options": memory.options() });
    let path = ["agents", prompt.id.as_str(), "object"];
    let asking = session.api.reply(Call::post(&path, &body).long());
    let reply = attended(asking, deadline_of(prompt.timeout), stopped).await?;
    let object = &reply.body["data"];
    // an object may have these members itself; what waits has its id in a header as well
    let is_waiting = object["object"].is_null() && text(object, "status") == "suspended";
    session.screen.value(object, |it| vec![plain_lines(&pretty(it))])?;
    if is_waiting && object["asks"].is_array() {
        let id = text(object, "generationId");
        return Err(generation::waiting(&prompt.id, id, items(object, "asks")));
    }
    Ok(Exit::Ok)
}
