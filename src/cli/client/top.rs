//! `greenroom top`: what a server does now, again and again.

use std::time::Duration;

use serde_json::{Value, json};

use super::api::Call;
use super::exit::{Exit, Failure};
use super::screen::{Form, Screen};
use super::session::{Session, attended, duration_of};
use super::table::Table;
use super::text::{cell, compact, items, plain, text};

/// Executions that are shown.
const SHOWN_MAX: &str = "20";

/// Clears what is below the top left of the terminal.
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

/// Switches to another screen, where nothing of the terminal's history is lost, and back.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";

/// Options of `top`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Top {
    #[command(flatten)]
    pub(super) options: super::settings::Options,
    /// Time between two looks, as 2s.
    #[arg(long, value_name = "DURATION", value_parser = interval_of, default_value = "2s")]
    interval: Duration,
    /// Look once, also on a terminal.
    #[arg(long)]
    once: bool,
}

/// Reads the time between two looks, each of which is four requests.
fn interval_of(text: &str) -> Result<Duration, String> {
    let interval = duration_of(text)?;
    let is_sensible = interval >= Duration::from_millis(100);
    if is_sensible { Ok(interval) } else { Err("must be at least 100ms".to_owned()) }
}

/// Shows what the server does, until Ctrl-C on a terminal, else once.
pub(super) async fn run(session: &Session, top: &Top) -> Result<Exit, Failure> {
    let screen = &session.screen;
    if top.once || !screen.is_live || screen.form != Form::Table {
        let view = look(session).await?;
        screen.value(&view, |view| lines_of(screen, session.api.server().as_str(), view))?;
        return Ok(Exit::Ok);
    }
    // a server that cannot be reached is refused before the screen is switched
    look(session).await?;
    screen.write(ENTER)?;
    let watched = attended(again(session, top.interval), None, |exit| Failure::new(exit, "")).await;
    screen.write(LEAVE)?;
    match watched {
        // a signal is the way out, and needs no message
        Err(failure) if failure.exit.is_signal() => Ok(failure.exit),
        watched => watched,
    }
}

async fn again(session: &Session, interval: Duration) -> Result<Exit, Failure> {
    loop {
        let looked = look(session).await;
        // the terminal may have another size by now
        let screen = Screen::new(session.screen.form);
        let lines = match looked {
            Ok(view) => lines_of(&screen, session.api.server().as_str(), &view),
            Err(failure) if failure.is_transient() => {
                failure.to_string().lines().map(str::to_owned).collect()
            }
            Err(failure) => return Err(failure),
        };
        let lines = screen.fitted(lines, "Ctrl-C ends");
        screen.write(&format!("{CLEAR}{}", lines.join("\n")))?;
        tokio::time::sleep(interval).await;
    }
}

/// Reads what is shown, at about one time.
async fn look(session: &Session) -> Result<Value, Failure> {
    // four requests at once are a large future
    Box::pin(requests(session)).await
}

async fn requests(session: &Session) -> Result<Value, Failure> {
    let api = &session.api;
    let running = [("status", "running"), ("limit", SHOWN_MAX)];
    let executions = ["workflows", "executions"];
    let asks = [("limit", SHOWN_MAX)];
    let (counts, running, asks, agents) = tokio::try_join!(
        api.data(Call::get(&["workflows", "executions", "counts"])),
        api.data(Call::get(&executions).query(&running)),
        api.data(Call::get(&["inbox"]).query(&asks)),
        api.data(Call::get(&["agents"])),
    )?;
    let working = agents.as_array().map_or(&[][..], Vec::as_slice).iter();
    let working: Vec<_> =
        working.filter(|it| it["status"] == "working").map(|it| &it["id"]).collect();
    Ok(json!({
        "total": counts["total"],
        "workflows": counts["workflows"],
        "running": running["executions"],
        "asks": asks["asks"],
        "agentsWorking": working,
    }))
}

/// Shows a look for people.
fn lines_of(screen: &Screen, server: &str, view: &Value) -> Vec<String> {
    let total = &view["total"];
    let count = |key: &str| format!("{} {key}", compact(&total[key]));
    let counts = ["running", "suspended", "completed", "error", "cancelled"].map(count).join(", ");
    let working: Vec<_> = items(view, "agentsWorking").iter().map(cell).collect();
    let working = if working.is_empty() { "none".to_owned() } else { working.join(" ") };
    let mut lines =
        vec![plain(server), counts, format!("agents that work: {working}"), String::new()];

    let mut workflows =
        Table::new(["WORKFLOW", "RUNNING", "SUSPENDED", "COMPLETED", "ERROR", "CANCELLED"]);
    for it in items(view, "workflows") {
        let keys = ["workflowId", "running", "suspended", "completed", "error", "cancelled"];
        workflows.row(keys.map(|key| cell(&it[key])));
    }
    lines.extend(screen.rows(&workflows));
    let mut running = Table::new(["RUNNING", "WORKFLOW", "STARTED", "USER"]);
    for it in items(view, "running") {
        running.row(["executionId", "workflowId", "startAt", "userId"].map(|key| cell(&it[key])));
    }
    let mut asks = Table::new(["WAITS FOR A PERSON", "KIND", "DEADLINE", "REASON"]);
    for it in items(view, "asks") {
        let [id, kind, deadline] = ["askId", "kind", "deadline"].map(|key| cell(&it[key]));
        asks.row([id, kind, deadline, plain(text(it, "reason"))]);
    }
    let shown = items(view, "running").len() as u64;
    let left = total["running"].as_u64().unwrap_or(0).saturating_sub(shown);
    let more = format!("… {left} that began earlier: greenroom executions list --status running");
    let asked = items(view, "asks").len().to_string() == SHOWN_MAX;
    let more_asks =
        "… there may be more: greenroom inbox list (--kind compensation: undoing has failed)";
    for (rows, more) in [
        (screen.rows(&running), Some(more).filter(|_| left > 0 && shown > 0)),
        (screen.rows(&asks), Some(more_asks.to_owned()).filter(|_| asked)),
    ] {
        if rows.len() > 1 {
            lines.push(String::new());
            lines.extend(rows);
            lines.extend(more);
        }
    }
    lines
}
