//! Events of an execution while they happen: lines, JSON, or steps that a terminal draws anew.

use std::collections::HashMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::events::{detail_of, line_of, ms_between, painted, step_of};
use super::exit::Failure;
use super::screen::{Colour, Form, Screen};
use super::text::{compact, duration, plain, text};

/// Interval at which running steps are drawn.
const FRAME: Duration = Duration::from_millis(100);

/// Most columns of the text that an agent is writing.
const WRITING_MAX: usize = 60;

/// Steps that are drawn below each other; the others run unseen.
const DRAWN_MAX: usize = 20;

/// A view of events.
#[derive(Debug)]
pub(super) enum Show {
    Nothing,
    /// A line per event.
    Lines(Screen),
    /// A JSON value per event.
    Json(Screen),
    Live(Box<Live>),
}

/// Running steps on a terminal.
#[derive(Debug)]
pub(super) struct Live {
    screen: Screen,
    steps: MultiProgress,
    running: HashMap<String, Running>,
}

#[derive(Debug)]
struct Running {
    bar: ProgressBar,
    since: String,
    /// End of the text that an agent is writing.
    writing: String,
}

impl Show {
    /// Shows events as the screen asks for.
    pub(super) fn on(screen: Screen) -> Self {
        match screen.form {
            Form::Jsonl => Self::Json(screen),
            Form::Json => Self::Nothing,
            Form::Table if screen.is_live => Self::Live(Box::new(Live::on(screen))),
            Form::Table => Self::Lines(screen),
        }
    }

    /// Shows an event.
    pub(super) fn event(&mut self, number: Option<u64>, event: &Value) -> Result<(), Failure> {
        match self {
            Self::Nothing => Ok(()),
            Self::Lines(_) if number.is_none() => Ok(()),
            Self::Lines(screen) => screen.line(&line_of(screen, event)),
            Self::Json(screen) => screen.line(&compact(&numbered(number, event))),
            Self::Live(live) => live.event(event),
        }
    }

    /// Removes what is drawn.
    pub(super) fn end(&mut self) {
        if let Self::Live(live) = self {
            live.running.drain().for_each(|(_, step)| step.bar.finish_and_clear());
        }
    }
}

/// Adds the number of an event, as pages of events have it.
fn numbered(number: Option<u64>, event: &Value) -> Value {
    let mut event = event.clone();
    if let (Some(number), Some(fields)) = (number, event.as_object_mut()) {
        fields.insert("sequence".to_owned(), number.into());
    }
    event
}

impl Live {
    fn on(screen: Screen) -> Self {
        let steps = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        Self { screen, steps, running: HashMap::new() }
    }

    fn event(&mut self, event: &Value) -> Result<(), Failure> {
        let (kind, step) = (text(event, "type"), plain(step_of(event)));
        match kind {
            "step-start" => self.begin(step, text(event, "timestamp")),
            "step-progress" => self.progress(&step, &event["event"]),
            "step-complete" => self.finish("✓", event, &step)?,
            "step-error" => self.finish("✗", event, &step)?,
            "step-suspended" => self.finish("?", event, &step)?,
            "step-skipped" | "step-cancelled" => self.finish("-", event, &step)?,
            "compensation-complete" if event["skipped"] == true => {
                self.print("-", event, &step, &detail_of(event))?;
            }
            "compensation-complete" => self.print("↩", event, &step, "compensated")?,
            "compensation-error" => self.print("✗", event, &step, &detail_of(event))?,
            "workflow-compensating" => self.print("↩", event, "compensates", &detail_of(event))?,
            "step-resumed" | "workflow-resumed" => self.print("▸", event, &step, "resumed")?,
            "workflow-cancelled" => self.print("-", event, "cancelled", &detail_of(event))?,
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, step: String, since: &str) {
        if self.running.len() >= DRAWN_MAX {
            return;
        }
        let bar = self.steps.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style.tick_strings(&["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", " "]));
        }
        bar.set_message(step.clone());
        bar.enable_steady_tick(FRAME);
        let running = Running { bar, since: since.to_owned(), writing: String::new() };
        if let Some(before) = self.running.insert(step, running) {
            before.bar.finish_and_clear();
        }
    }

    /// Shows the end of the text that the agent of a step writes.
    fn progress(&mut self, step: &str, event: &Value) {
        let Some(running) = self.running.get_mut(step) else { return };
        running.writing.push_str(&plain(text(event, "delta")));
        let excess = running.writing.chars().count().saturating_sub(WRITING_MAX);
        running.writing = running.writing.chars().skip(excess).collect();
        running.bar.set_message(format!("{step}  {}", running.writing));
    }

    fn finish(&mut self, mark: &str, event: &Value, step: &str) -> Result<(), Failure> {
        let mut took = None;
        if let Some(running) = self.running.remove(step) {
            took = ms_between(&running.since, text(event, "timestamp"));
            running.bar.finish_and_clear();
        }
        let detail = match (detail_of(event), took) {
            (detail, Some(ms)) if detail.is_empty() => {
                self.screen.paint(Colour::Grey, &duration(ms))
            }
            (detail, _) => detail,
        };
        self.print(mark, event, step, &detail)
    }

    /// Writes a line above the running steps.
    fn print(&self, mark: &str, event: &Value, step: &str, detail: &str) -> Result<(), Failure> {
        let mark = painted(&self.screen, text(event, "type"), mark);
        let line = format!("{mark} {step}  {detail}");
        self.steps.suspend(|| self.screen.line(line.trim_end()))
    }
}
