//! Progress that servers report while they work on calls: the newest of each call, at most ten a
//! second.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_actors::agent::tool::ToolContext;
use greenroom_actors::domain::failure::shortened;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::adapters::mcp::connection::link::Link;

/// Shortest time between two reports of a call that are passed on.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest message of a report that is passed on.
const MESSAGE_BYTES_MAX: usize = 500;
/// Largest whole number that is shown without a fraction, 2^53.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Longest message that is kept until it is passed on.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of reports that are kept for calls which do not listen yet.
const EARLY_MAX: usize = 16;

/// The running calls of a connection, by the token of their progress.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    slots: HashMap<ProgressToken, Arc<Slot>>,
    /// Reports that came before their calls listened: the token of a call is known once it is sent.
    early: VecDeque<ProgressNotificationParam>,
}

/// The newest report of a call that has not been passed on.
#[derive(Debug, Default)]
struct Slot {
    reports: Mutex<Reports>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Reports {
    newest: Option<ProgressNotificationParam>,
    /// Highest progress so far. It never falls, so that a lower one was overtaken.
    highest: Option<f64>,
}

/// Listens for the progress of one call, until it is dropped.
#[derive(Debug)]
pub(crate) struct Listener<'l> {
    listeners: &'l Listeners,
    token: ProgressToken,
    slot: Arc<Slot>,
}

impl Listeners {
    /// Begins to listen for the progress of a call.
    pub(crate) fn begin(&self, token: ProgressToken) -> Listener<'_> {
        let slot = Arc::<Slot>::default();
        let mut known = self.lock();
        known.early.retain(|report| {
            let is_other = report.progress_token != token;
            if !is_other {
                slot.put(report.clone());
            }
            is_other
        });
        known.slots.insert(token.clone(), Arc::clone(&slot));
        drop(known);
        Listener { listeners: self, token, slot }
    }

    /// Takes a report, without a message that is far too long. One that belongs to no running call is
    /// kept for a while: the call may be about to listen.
    pub(crate) fn take(&self, mut report: ProgressNotificationParam) {
        report.message.take_if(|message| message.len() > KEPT_BYTES_MAX);
        let mut known = self.lock();
        if let Some(slot) = known.slots.get(&report.progress_token).map(Arc::clone) {
            drop(known);
            return slot.put(report);
        }
        if known.early.len() == EARLY_MAX {
            known.early.pop_front();
        }
        known.early.push_back(report);
    }

    /// Forgets the calls of a connection before another one, whose tokens begin again.
    pub(crate) fn forget(&self) {
        *self.lock() = Known::default();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn put(&self, report: ProgressNotificationParam) {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let is_overtaken = reports.highest.is_some_and(|highest| report.progress < highest);
        if is_overtaken || !report.progress.is_finite() {
            return;
        }
        reports.highest = Some(report.progress);
        reports.newest = Some(report);
        self.notify.notify_one();
    }

    fn take(&self) -> Option<ProgressNotificationParam> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).newest.take()
    }
}

impl Listener<'_> {
    /// Passes reports on to the step that makes the call.
    pub(crate) async fn pass_on(&self, link: &Link, context: &ToolContext) -> Infallible {
        self.each(|report| {
            context.progress(shown(report, |message| link.without_secrets(message)));
        })
        .await
    }

    async fn each(&self, mut take: impl FnMut(ProgressNotificationParam)) -> Infallible {
        loop {
            match self.slot.take() {
                Some(report) => {
                    take(report);
                    tokio::time::sleep(PAUSE).await;
                }
                None => self.slot.notify.notified().await,
            }
        }
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        let mut listeners = self.listeners.lock();
        // a call of the next connection may have the same token
        if listeners.slots.get(&self.token).is_some_and(|slot| Arc::ptr_eq(slot, &self.slot)) {
            listeners.slots.remove(&self.token);
        }
    }
}

/// Returns a report as the `event` of a `step-progress`: `progress`, and `total` and `message` if the
/// server says them. Secrets are removed before the message is cut, so that no part of one stays.
fn shown(report: ProgressNotificationParam, clean: impl FnOnce(String) -> String) -> Value {
    let mut event = Map::new();
    event.insert("progress".to_owned(), number(report.progress));
    if let Some(total) = report.total.filter(|total| total.is_finite()) {
        event.insert("total".to_owned(), number(total));
    }
    if let Some(message) = report.message {
        let message = clean(message);
        event.insert("message".to_owned(), shortened(&message, MESSAGE_BYTES_MAX).into());
    }
    Value::Object(event)
}

fn number(number: f64) -> Value {
    match number.fract() == 0.0 && number.abs() <= WHOLE_MAX {
        true => Value::from(number as i64),
        false => Value::from(number),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;
    use serde_json::json;

    use super::*;

    fn token(number: i64) -> ProgressToken {
        ProgressToken(NumberOrString::Number(number))
    }

    fn report(number: i64, progress: f64) -> ProgressNotificationParam {
        ProgressNotificationParam::new(token(number), progress)
    }

    fn with_message(message: &str) -> ProgressNotificationParam {
        let mut report = report(1, 1.0);
        report.message = Some(message.to_owned());
        report
    }

    #[test]
    fn reports_are_shown_with_what_the_server_says() {
        let (longest, longer) = ("x".repeat(500), "x".repeat(501));
        let between = format!("{}ä", "x".repeat(499));
        for (report, expected) in [
            (report(1, 0.25), json!({ "progress": 0.25 })),
            (report(1, 3.0).with_total(4.0), json!({ "progress": 3, "total": 4 })),
            (report(1, 1e300).with_total(f64::NAN), json!({ "progress": 1e300 })),
            (with_message("at key k3y"), json!({ "progress": 1, "message": "at key ***" })),
            (with_message(&longest), json!({ "progress": 1, "message": longest })),
            (with_message(&longer), json!({ "progress": 1, "message": longest })),
            (with_message(&between), json!({ "progress": 1, "message": "x".repeat(499) })),
        ] {
            assert_eq!(shown(report, |message| message.replace("k3y", "***")), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_report_is_passed_on_ten_times_a_second() {
        let listeners = Listeners::default();
        let listener = listeners.begin(token(1));
        let mut passed = Vec::new();
        let passing = listener.each(|report| passed.push(report.progress));
        let reporting = async {
            for step in 0..100 {
                listeners.take(report(1, f64::from(step)));
                // overtaken, of another call, and no number
                listeners.take(report(1, f64::from(step) - 1.0));
                listeners.take(report(2, 1000.0));
                listeners.take(report(1, f64::NAN));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            never = passing => match never {},
            () = reporting => {}
        }
        assert!((10..=11).contains(&passed.len()), "{passed:?}");
        assert_eq!(passed[0], 0.0);
        assert!(passed.is_sorted() && passed[9] >= 89.0, "{passed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_that_comes_before_its_call_listens_is_passed_on() {
        let listeners = Listeners::default();
        listeners.take(report(1, 0.5));
        (2..2 + EARLY_MAX as i64 - 1).for_each(|other| listeners.take(report(other, 0.7)));
        let listener = listeners.begin(token(1));
        assert_eq!(listener.slot.take().map(|report| report.progress), Some(0.5));
        listeners.take(report(99, 1.0));
        listeners.take(report(100, 1.0));
        assert_eq!(listeners.lock().early.len(), EARLY_MAX, "the oldest is dropped");
        assert!(listeners.begin(token(2)).slot.take().is_none());
    }

    #[test]
    fn calls_are_forgotten_when_they_end_and_with_their_connection() {
        let listeners = Listeners::default();
        let old = listeners.begin(token(1));
        listeners.forget();
        let new = listeners.begin(token(1));
        drop(old);
        listeners.take(report(1, 5.0));
        assert_eq!(new.slot.take().map(|report| report.progress), Some(5.0));
        drop(new);
        assert!(listeners.lock().slots.is_empty());
    }
}
