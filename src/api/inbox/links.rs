//! Signed links, with which one person answers one ask without a token.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::Runtime;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Ask, AskState};
use greenroom_actors::requests::{
    AnswerAsk, Answerer, AskAccess, AskDetail, AskError, Assignee, Permissions, Principal,
};
use greenroom_actors::visibility::Visibility;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::changes::{Change, check_user};
use crate::api::caller::Caller;
use crate::api::error::{ApiError, AskRefusal};
use crate::api::json;
use crate::api::wire::Iso;
use crate::api::wire::inbox::{LinkBody, LinkView};
use crate::auth::{LINK_TTL_MAX, LinkKey};

/// Form of the payload.
const VERSION: u8 = 1;

/// Time that the page of a caller is good for, in milliseconds.
const PAGE_MS: u64 = 60 * 60 * 1000;

/// Makes and reads links. Nothing is stored: a link is what its token says.
#[derive(Debug, Clone)]
pub struct Links {
    pub key: LinkKey,
    /// Beginning of links, without the slash at its end.
    pub base_url: String,
    /// Time that links are good for, unless they are made for another one.
    pub ttl: Duration,
}

/// Content of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    version: u8,
    ask_id: String,
    /// User or role that its holder counts as.
    pub to: Assignee,
    expires_at: Timestamp,
}

impl Links {
    fn url(&self, link: &Link) -> Result<String, ApiError> {
        let payload = serde_json::to_vec(link).map_err(|error| {
            log::error!("cannot serialize a link: {error}");
            ApiError::Internal
        })?;
        Ok(format!("{}/inbox/link/{}", self.base_url, self.key.sign(&payload)))
    }

    /// Reads a token. Returns `None` if it was not made with this secret.
    fn open(&self, token: &str) -> Option<Link> {
        let link: Link = serde_json::from_slice(&self.key.open(token)?).ok()?;
        Some(link).filter(|link| link.version == VERSION)
    }
}

impl Link {
    /// Returns who answers with the link.
    fn answerer(&self) -> Answerer {
        match &self.to {
            Assignee::User(id) => Answerer { user: Some(Arc::clone(id)), roles: Vec::new() },
            Assignee::Role(name) => Answerer { user: None, roles: vec![Arc::clone(name)] },
            Assignee::NotSelf => Answerer::default(),
        }
    }

    /// Returns true if the holder is one of those who are asked.
    fn is_asked(&self, ask: &Ask) -> bool {
        let holder = AskAccess { answerer: Some(self.answerer()), ..AskAccess::default() };
        holder.check_asked(ask).is_ok()
    }

    /// Returns the principal of an answer. It is a claim: the maker of the link said who its holder
    /// is, who may pass it on; no holder has proved to be this user. The holder of a
    /// link for a role has no name.
    fn principal(&self) -> Option<Principal> {
        self.answerer().user.map(Principal::claimed)
    }
}

/// Makes a link for one of those who may answer the ask, on behalf of another.
pub async fn make_link(change: Change<'_>, links: Option<&Links>) -> Result<LinkView, ApiError> {
    let links = links.ok_or(ApiError::Ask(AskRefusal::LinksOff))?;
    let bytes = change.body.map_err(Clone::clone)?;
    let LinkBody { to, ttl, options } = json::parse_closed(bytes)?;
    let options = options.map(|json::Object(it)| it).unwrap_or_default();
    let to = to.parse().ok().filter(|to| *to != Assignee::NotSelf).ok_or_else(wrong_holder)?;
    check_user("to", &to)?;
    let link = Link {
        version: VERSION,
        ask_id: change.ask.id.to_string(),
        to,
        expires_at: expiry(change.runtime.clock().now(), ttl.as_deref(), links.ttl)?,
    };
    let access = change.access(false, &options)?;
    let (id, ask) = (Arc::clone(&change.ask.id), &change.ask);
    access.check_asked(ask).map_err(|error| ApiError::from_ask(&id, error))?;
    if !link.is_asked(ask) {
        return Err(ApiError::body("to", not_asked(&link.to, ask)));
    }
    open_detail(change.runtime, &id).await?;
    let by = access.user().unwrap_or("an unknown caller");
    log::info!("ask {id}: {by} made a link for {}", link.to);
    Ok(LinkView { url: links.url(&link)?, expires_at: Iso(link.expires_at) })
}

/// Returns the address of a page where the caller, who may answer the ask, does so within an hour: as
/// the user, or in one of the caller's roles. `None` if only both together would be asked, or the holder
/// of a role, who has no name, could not answer what the caller has claimed.
pub fn page_for(links: &Links, ask: &Ask, caller: &Caller, now: Timestamp) -> Option<String> {
    let Answerer { user, roles } = caller.answerer(None);
    // without an id it counts as an unknown person, like the caller
    let user = user.map_or(Assignee::NotSelf, Assignee::User);
    let roles = roles.into_iter().filter(|_| ask.claim_at(now).is_none()).map(Assignee::Role);
    let holders = std::iter::once(user).chain(roles);
    let mut all = holders.map(|to| Link {
        version: VERSION,
        ask_id: ask.id.to_string(),
        to,
        expires_at: now.plus_ms(PAGE_MS),
    });
    let link = all.find(|link| link.is_asked(ask))?;
    log::debug!("ask {}: a page for {}", ask.id, link.to);
    links.url(&link).ok()
}

/// Returns why a holder of the link could not answer.
fn not_asked(to: &Assignee, ask: &Ask) -> &'static str {
    let excludes_self = ask.rules.to.contains(&Assignee::NotSelf);
    match to {
        Assignee::Role(_) if excludes_self => {
            "must be a user: the holder of a link for a role is unknown, and could be the one who \
             started this (`!self`)"
        }
        _ => "is not assigned to this ask: see `to` of the ask",
    }
}

fn wrong_holder() -> ApiError {
    ApiError::body("to", "must be user:<id> or role:<name>")
}

fn expiry(now: Timestamp, ttl: Option<&str>, default: Duration) -> Result<Timestamp, ApiError> {
    let ttl = match ttl {
        None => Some(default),
        Some(text) => humantime::parse_duration(text).ok(),
    };
    let ttl = ttl.filter(|ttl| !ttl.is_zero() && *ttl <= LINK_TTL_MAX);
    let ttl =
        ttl.ok_or_else(|| ApiError::body("ttl", "must be a duration such as \"2h\", at most 90d"))?;
    Ok(now.plus_ms(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)))
}

/// Follows the token of a link to its ask, which is still open. The link shows what its maker could
/// see, to every holder.
pub async fn follow_link(
    runtime: &Runtime,
    links: Option<&Links>,
    token: &str,
) -> Result<(Link, AskDetail), ApiError> {
    let link = links.and_then(|links| links.open(token));
    let link = link.ok_or(ApiError::Ask(AskRefusal::LinkInvalid))?;
    if link.expires_at <= runtime.clock().now() {
        return Err(ApiError::Ask(AskRefusal::LinkExpired { at: link.expires_at }));
    }
    let detail = open_detail(runtime, &link.ask_id).await?;
    Ok((link, detail))
}

/// Answers an ask with a link to it. `permissions`: those of a caller without a token.
pub async fn answer_with_link(
    runtime: &Runtime,
    link: &Link,
    detail: &AskDetail,
    data: Value,
    permissions: Permissions,
) -> Result<AskDetail, ApiError> {
    let answerer = Some(link.answerer());
    let access = AskAccess { answerer, permissions, ..AskAccess::default() };
    let answer = AnswerAsk { data, by: link.principal(), access, idempotency: None };
    let answered = runtime.answer_ask(detail.ask.clone(), answer).await;
    answered.map_err(|error| ApiError::from_ask(&link.ask_id, error))
}

/// Returns an ask with what is needed to answer it; refuses one that is closed like an answer.
async fn open_detail(runtime: &Runtime, id: &str) -> Result<AskDetail, ApiError> {
    let refused = |error| ApiError::from_ask(id, error);
    let ask = runtime.find_ask(id, &Visibility::Everything).await.map_err(refused)?;
    let detail = runtime.describe_ask(ask).await.map_err(refused)?;
    match (detail.ask.state, detail.ask.closed_at) {
        (AskState::Open, _) | (_, None) => Ok(detail),
        (state @ (AskState::Answered | AskState::Expired | AskState::Withdrawn), Some(at)) => {
            let by = detail.answer.and_then(|answer| answer.by);
            Err(refused(AskError::Closed { state, at, by }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_says_what_was_signed() {
        let key = LinkKey::new(b"0123456789abcdef0123456789abcdef").unwrap();
        let base_url = "https://green.example".to_owned();
        let links = Links { key, base_url, ttl: Duration::ZERO };
        let link = Link {
            version: VERSION,
            ask_id: "ask_3b9fc81d4e7052aa".to_owned(),
            to: "user:zoë".parse().unwrap(),
            expires_at: Timestamp(1_790_000_000_000),
        };
        let opened = |link: &Link| {
            let url = links.url(link).unwrap();
            links.open(url.strip_prefix("https://green.example/inbox/link/").unwrap())
        };
        assert_eq!(opened(&link), Some(link.clone()));
        assert_eq!(opened(&Link { version: 2, ..link }), None, "of a later version");
        assert_eq!(links.open(&links.key.sign(b"{}")), None);
    }

    #[test]
    fn links_last_at_most_90_days() {
        let default = Duration::from_secs(5);
        let expires = |ttl| expiry(Timestamp(0), ttl, default);
        for (ttl, ms) in [(None, 5_000), (Some("2h"), 7_200_000), (Some("90d"), 7_776_000_000)] {
            assert_eq!(expires(ttl), Ok(Timestamp(ms)), "{ttl:?}");
        }
        for bad in ["", "0s", "-1s", "91d", "soon", "7"] {
            assert_eq!(expires(Some(bad)).unwrap_err().status(), 400, "{bad}");
        }
    }
}
