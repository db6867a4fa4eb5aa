//! News of asks for subscribers of the inbox.
//!
//! The store does not report what changes, and other processes change asks as well. So while there
//! are subscribers, one task of this process reads the open asks every second and compares them with
//! those of before.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;

use crate::domain::assignment::{AskRules, Assignee};
use crate::observe::ask_news::{AskNews, AskNewsKind};
use crate::ports::store::{Ask, AskFilter, AskState, Claim, ReadError};
use crate::requests::Unavailable;
use crate::runtime::Runtime;

/// Interval of the reads: the delay of news.
const READ_EVERY: Duration = Duration::from_secs(1);

/// Open asks that are watched, those with the next deadlines; a read has at most as many.
const WATCHED_MAX: usize = 10_000;

/// Asks that are read at once.
const PAGE: usize = 500;

/// Asks that are looked up after one read because they are no longer open; others follow after the
/// next one.
const CLOSED_MAX: usize = 1_000;

/// News that wait for a subscriber before it misses some: more than one read gives, so that a
/// subscriber that follows misses none. They are shared by all subscribers.
const NEWS_MAX: usize = 16_384;

/// Parts of an open ask that change, as last seen.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    to: Vec<Assignee>,
    claim: Option<Claim>,
    /// Number of reminders that are still to come.
    reminders: usize,
}

/// The open asks of one read.
#[derive(Debug, Default)]
struct Read {
    asks: Vec<Ask>,
    /// True if there are more than are watched.
    is_cut: bool,
}

/// The open asks of before.
#[derive(Debug, Default)]
struct Watched {
    open: HashMap<Arc<str>, Seen>,
    is_cut: bool,
}

impl Runtime {
    /// Watches the asks: every change from now on, with a delay of up to a second. One that opens
    /// and closes within it is not noticed. The receiver ends when the runtime drains.
    pub async fn watch_asks(&self) -> Result<broadcast::Receiver<AskNews>, Unavailable> {
        let mut feed = self.shared.ask_feed.0.lock().await;
        if let Some(feed) = &*feed {
            return Ok(feed.subscribe());
        }
        // before the caller continues, so that it misses nothing which it does not see in a list
        let mut watched = Watched::default();
        watched.note(self.read_open_asks().await?);
        let arbiter = self.arbiters.spread("asks").ok_or(Unavailable::ActorLost)?;
        let (sender, receiver) = broadcast::channel(NEWS_MAX);
        *feed = Some(sender);
        let runtime = self.clone();
        arbiter.spawn_fn(move || drop(actix::spawn(runtime.feed_asks(watched))));
        Ok(receiver)
    }

    /// Sends news until there are no subscribers, or the runtime drains.
    async fn feed_asks(self, mut watched: Watched) {
        loop {
            tokio::time::sleep(READ_EVERY).await;
            let mut feed = self.shared.ask_feed.0.lock().await;
            let is_over = self.shared.is_draining();
            let Some(sender) = feed.clone().filter(|it| it.receiver_count() > 0 && !is_over) else {
                *feed = None;
                return;
            };
            drop(feed);
            match self.news_of_asks(&mut watched).await {
                // a subscriber that has left in the meantime hears nothing
                Ok(news) => news.into_iter().for_each(|news| drop(sender.send(news))),
                Err(why) => log::debug!("news of asks come later: {why}"),
            }
        }
    }

    async fn news_of_asks(&self, watched: &mut Watched) -> Result<Vec<AskNews>, Unavailable> {
        let read = self.read_open_asks().await?;
        let mut closed = Vec::new();
        for id in watched.missing_in(&read).into_iter().take(CLOSED_MAX) {
            let ask = match self.shared.store.ask(&id).await {
                Ok(ask) => ask,
                // forgotten like a deleted one: the news of others do not wait for it
                Err(ReadError::Corrupt(record)) => {
                    log::warn!("no more news of {record}: it cannot be read");
                    None
                }
                Err(error @ (ReadError::Unavailable(_) | ReadError::TooLarge(_))) => {
                    return Err(error.into());
                }
            };
            closed.push((id, ask));
        }
        let mut news: Vec<_> =
            closed.into_iter().filter_map(|(id, ask)| watched.close(&id, ask)).collect();
        news.extend(watched.note(read));
        Ok(news)
    }

    async fn read_open_asks(&self) -> Result<Read, Unavailable> {
        let filter = AskFilter { is_open: true, ..AskFilter::default() };
        let (mut read, mut after) = (Read::default(), None);
        loop {
            let page = self.inbox(&filter, after, PAGE).await?;
            read.asks.extend(page.asks);
            after = page.next;
            read.is_cut = after.is_some() && read.asks.len() >= WATCHED_MAX;
            if after.is_none() || read.is_cut {
                return Ok(read);
            }
        }
    }
}

impl Watched {
    /// Returns the asks that are no longer among the open ones.
    fn missing_in(&self, read: &Read) -> Vec<Arc<str>> {
        let now: std::collections::HashSet<_> = read.asks.iter().map(|ask| &ask.id).collect();
        self.open.keys().filter(|id| !now.contains(id)).cloned().collect()
    }

    /// Forgets an ask that was not among the open ones, as the store has it now. One that is open
    /// is behind the last that is watched, or opened again: the next read shows it.
    fn close(&mut self, id: &str, ask: Option<Ask>) -> Option<AskNews> {
        self.open.remove(id);
        let ask = ask?;
        let kind = match ask.state {
            AskState::Open => return None,
            AskState::Answered => AskNewsKind::Answered,
            AskState::Expired => AskNewsKind::Expired,
            AskState::Withdrawn => AskNewsKind::Withdrawn,
        };
        Some(AskNews::Changed { kind, ask: Arc::new(ask) })
    }

    /// Takes over a read; returns what is new in it.
    fn note(&mut self, read: Read) -> Vec<AskNews> {
        let mut news = Vec::new();
        if read.is_cut && !self.is_cut {
            news.push(AskNews::Overflow);
        }
        self.is_cut = read.is_cut;
        for ask in read.asks {
            let Ask { rules, claim, .. } = &ask;
            let (to, reminders) = (rules.to.clone(), rules.remind_ms.len());
            let seen = Seen { to, claim: claim.clone(), reminders };
            let before = self.open.insert(Arc::clone(&ask.id), seen);
            let ask = Arc::new(ask);
            let kinds = kinds_since(before.as_ref(), &ask);
            news.extend(kinds.map(|kind| AskNews::Changed { kind, ask: Arc::clone(&ask) }));
        }
        news
    }
}

/// Returns what has happened to an open ask since it was seen.
fn kinds_since(before: Option<&Seen>, ask: &Ask) -> impl Iterator<Item = AskNewsKind> + use<> {
    let kinds = match before {
        None => [Some(AskNewsKind::Opened), None, None],
        Some(Seen { to, claim, reminders }) => {
            let claim = match &ask.claim {
                now if now == claim => None,
                Some(_) => Some(AskNewsKind::Claimed),
                None => Some(AskNewsKind::Released),
            };
            let AskRules { to: asked, remind_ms: left, .. } = &ask.rules;
            let reminded = (left.len() < *reminders).then_some(AskNewsKind::Reminded);
            [reminded, (to != asked).then_some(AskNewsKind::Assigned), claim]
        }
    };
    kinds.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::ExecutionId;
    use crate::domain::time::Timestamp;
    use crate::ports::store::{AskKind, AskSubject, AskedStep};

    fn ask(id: &str) -> Ask {
        let subject = AskSubject::Step(AskedStep {
            execution_id: ExecutionId::parse("e").unwrap(),
            workflow_id: Arc::from("w"),
            path: Arc::from("s"),
        });
        Ask {
            id: Arc::from(id),
            kind: AskKind::Step,
            state: AskState::Open,
            subject,
            user_id: None,
            reason: Arc::from(""),
            opened_at: Timestamp(0),
            deadline: None,
            closed_at: None,
            revision: 0,
            rules: AskRules::default(),
            claim: None,
        }
    }

    fn with_reminders(remind_ms: Vec<u64>) -> Ask {
        Ask { rules: AskRules { remind_ms, ..AskRules::default() }, ..ask("a") }
    }

    fn claimed(id: &str, by: &str) -> Ask {
        Ask { claim: Some(Claim { by: Arc::from(by), until: Timestamp(1) }), ..ask(id) }
    }

    fn assigned(id: &str) -> Ask {
        let rules = AskRules { to: vec!["user:ann".parse().unwrap()], ..AskRules::default() };
        Ask { rules, ..ask(id) }
    }

    fn kinds(news: &[AskNews]) -> Vec<&'static str> {
        let kind = |news: &AskNews| match news {
            AskNews::Changed { kind, .. } => kind.as_str(),
            AskNews::Overflow => "overflow",
        };
        news.iter().map(kind).collect()
    }

    fn noted(watched: &mut Watched, asks: Vec<Ask>, is_cut: bool) -> Vec<&'static str> {
        kinds(&watched.note(Read { asks, is_cut }))
    }

    #[test]
    fn news_are_the_differences_of_two_reads() {
        let mut watched = Watched::default();
        let rows = [
            (ask("a"), &["opened"][..]),
            (ask("a"), &[]),
            (Ask { revision: 1, ..ask("a") }, &[]),
            (claimed("a", "ann"), &["claimed"]),
            (claimed("a", "bob"), &["claimed"]),
            (claimed("a", "bob"), &[]),
            (assigned("a"), &["assigned", "released"]),
            (ask("a"), &["assigned"]),
            (with_reminders(vec![5, 9]), &[]),
            (with_reminders(vec![9]), &["reminded"]),
            (with_reminders(vec![9]), &[]),
            (ask("a"), &["reminded"]),
        ];
        for (ask, expected) in rows {
            assert_eq!(noted(&mut watched, vec![ask.clone()], false), expected, "{ask:?}");
        }
    }

    #[test]
    fn asks_that_are_gone_are_looked_up() {
        for (state, expected) in [
            (AskState::Answered, &["answered"][..]),
            (AskState::Expired, &["expired"]),
            (AskState::Withdrawn, &["withdrawn"]),
            (AskState::Open, &[]),
        ] {
            let mut watched = Watched::default();
            noted(&mut watched, vec![ask("a"), ask("b")], false);
            let now = Read { asks: vec![ask("b")], is_cut: false };
            assert_eq!(watched.missing_in(&now), [Arc::from("a")]);
            let news: Vec<_> =
                watched.close("a", Some(Ask { state, ..ask("a") })).into_iter().collect();
            assert_eq!(kinds(&news), expected);
            assert!(watched.missing_in(&now).is_empty());
        }
        let mut watched = Watched::default();
        noted(&mut watched, vec![ask("a")], false);
        assert_eq!(watched.close("a", None), None, "deleted");
    }

    #[test]
    fn an_overflow_is_told_once_each_time() {
        let mut watched = Watched::default();
        for (is_cut, expected) in [
            (false, &[][..]),
            (true, &["overflow"]),
            (true, &[]),
            (false, &[]),
            (true, &["overflow"]),
        ] {
            assert_eq!(noted(&mut watched, Vec::new(), is_cut), expected);
        }
    }
}
