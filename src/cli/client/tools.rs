//! `greenroom tools`: calling a tool without a model.

use serde_json::{Value, json};

use super::api::Call;
use super::exit::{Exit, Failure};
use super::screen::note;
use super::session::{Session, json_of, put_text};
use super::text::{cell, compact, duration, items, pretty};

/// Actions on tools.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub(in crate::cli) enum Action {
    /// Lists the tools.
    List,
    /// Calls a tool, and prints its result.
    Call {
        /// Name of the tool.
        #[arg(add = super::complete::tools())]
        name: String,
        /// Input: JSON, @FILE, or - for stdin.
        #[arg(short, long, value_name = "JSON", default_value = "{}")]
        input: String,
        /// User of the call, if no token names one.
        #[arg(long, value_name = "ID")]
        user: Option<String>,
    },
}

/// Runs an action.
pub(super) async fn run(session: &Session, action: &Action) -> Result<Exit, Failure> {
    let (name, input, user) = match action {
        Action::List => return list(session).await,
        Action::Call { name, input, user } => (name, input, user),
    };
    let mut body = json!({ "input": json_of("--input", input)? });
    put_text(&mut body, "userId", user.as_ref());
    let path = ["tools", name, "execute"];
    let called = session.api.data(Call::post(&path, &body).long()).await?;
    session.screen.value(&called, |called| vec![pretty(&called["result"])])?;
    if let Some(ms) = called["executionTime"].as_u64() {
        note(&format!("{name} took {}", duration(ms)));
    }
    Ok(Exit::Ok)
}

async fn list(session: &Session) -> Result<Exit, Failure> {
    let tools = session.api.data(Call::get(&["tools"])).await?;
    let tools = tools.as_array().map_or(&[][..], Vec::as_slice);
    let cells = |it: &Value| {
        let agents: Vec<_> = items(it, "agents").iter().map(cell).collect();
        let parameters = compact(&it["parameters"]["properties"]);
        [cell(&it["name"]), agents.join(" "), cell(&it["description"]), parameters]
    };
    let head = ["NAME", "AGENTS", "DESCRIPTION", "PARAMETERS"];
    session.screen.list(tools, head, cells, "the server has no tools")?;
    Ok(Exit::Ok)
}
