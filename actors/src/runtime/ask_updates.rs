//! Changes of asks: claims, and who is asked.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::assignment::Assignee;
use crate::domain::time::Timestamp;
use crate::observe::log_record::LogScope;
use crate::ports::store::{Ask, AskRevision, Claim};
use crate::requests::{AskAccess, AskDetail, AskError, AskUpdate, Unavailable};
use crate::runtime::Runtime;
use crate::visibility::Visibility;

/// Number of tries of a change while others change the ask as well.
const TRIES: usize = 8;

impl Runtime {
    /// Changes an open ask; resolves once that is durable.
    pub async fn update_ask(
        &self,
        mut ask: Ask,
        update: &AskUpdate,
        access: &AskAccess,
    ) -> Result<AskDetail, AskError> {
        let shared = &self.shared;
        shared.accepts_writes()?;
        for _ in 0..TRIES {
            if let Some(at) = ask.closed_at {
                return Err(self.closed(&ask, at).await?);
            }
            let Some(revision) = update.revise(&ask, access, shared.clock.now())? else {
                return self.describe_ask(ask).await;
            };
            let revised = shared.unless_outage(None, shared.store.revise_ask(revision)).await?;
            let is_taken = revised.map_err(Unavailable::from)?;
            ask = self.find_ask(&ask.id, &Visibility::Everything).await?;
            if is_taken {
                update.log(&ask.id, access);
                return self.describe_ask(ask).await;
            }
        }
        Err(Unavailable::Busy { execution: None }.into())
    }
}

impl AskUpdate {
    /// Returns the change of an ask; `None` if nothing has to change.
    fn revise(
        &self,
        ask: &Ask,
        access: &AskAccess,
        now: Timestamp,
    ) -> Result<Option<AskRevision>, AskError> {
        let (mut rules, mut claim) = (ask.rules.clone(), ask.claim_at(now).cloned());
        match self {
            Self::Claim { by, lasts } => {
                access.check(ask, now)?;
                claim = Some(Claim { by: by.clone(), until: now.plus_ms(milliseconds(*lasts)) });
            }
            Self::Release => {
                access.check_revision(ask)?;
                access.check_claim(ask, now)?;
                if claim.take().is_none() {
                    return Ok(None);
                }
            }
            Self::Assign { to } => {
                access.check_revision(ask)?;
                if !access.is_forced {
                    access.check_assigned(ask)?;
                }
                access.check_claim(ask, now)?;
                rules.assign(to);
                // of another who is passed over
                claim = claim.filter(|claim| access.is_own(claim));
            }
        }
        let (id, next_due) = (ask.id.clone(), ask.next_due(&rules));
        Ok(Some(AskRevision { id, revision: ask.revision, rules, claim, next_due }))
    }
}

impl AskUpdate {
    /// Logs who changed an ask: the ask itself keeps only the result. The record is deleted with the
    /// user who did it, and so names no other one.
    fn log(&self, id: &str, access: &AskAccess) {
        let by = access.user().unwrap_or("an unknown caller");
        let force = if access.is_forced { ", by force" } else { "" };
        let text = match self {
            Self::Claim { .. } => format!("ask {id}: {by} claimed it{force}"),
            Self::Release => format!("ask {id}: {by} released it{force}"),
            Self::Assign { to } => {
                let named = |assignee: &Assignee| match assignee {
                    Assignee::User(_) => "a user".to_owned(),
                    Assignee::Role(_) | Assignee::NotSelf => assignee.to_string(),
                };
                let to: Vec<_> = to.iter().map(named).collect();
                format!("ask {id}: {by} assigned it to [{}]{force}", to.join(", "))
            }
        };
        let user_id = access.user().map(Arc::from);
        let request = LogScope::current().unwrap_or_default();
        let scope = Arc::new(LogScope { user_id, ..LogScope::clone(&request) });
        scope.within(|| log::info!("{text}"));
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
