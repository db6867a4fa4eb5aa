//! Changes of asks.

use std::sync::Arc;

use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    AskAnswer, AskChange, AskRevision, AskState, Header, MissingAsks, NewAsk, Row,
};

/// A serialized change of an ask.
#[derive(Debug)]
pub enum PreparedAskChange {
    Open(PreparedAsk),
    Close { id: Arc<str>, state: AskState, at: Timestamp, answer: Option<PreparedAnswer> },
}

/// A serialized ask that opens.
#[derive(Debug)]
pub struct PreparedAsk {
    /// Without details, which are serialized.
    pub ask: NewAsk,
    /// JSON; `None` if nothing is ruled.
    pub rules: Option<String>,
    /// JSON.
    pub details: Option<String>,
}

/// A serialized answer.
#[derive(Debug)]
pub struct PreparedAnswer {
    /// The user who gave it.
    pub by: Option<Arc<str>>,
    pub json: String,
}

/// Serialized asks of an execution of a version that knows none.
#[derive(Debug)]
pub struct PreparedMissingAsks {
    pub header: Arc<Header>,
    pub row: Row,
    pub revision: u64,
    pub asks: Vec<PreparedAsk>,
    pub at: Timestamp,
}

/// Serialized rules of an open ask, and its claim.
#[derive(Debug)]
pub struct PreparedAskRevision {
    pub revision: AskRevision,
    /// JSON; `None` if nothing is ruled.
    pub rules: Option<String>,
}

impl PreparedAskChange {
    /// Serializes changes.
    pub fn all(changes: Vec<AskChange>) -> serde_json::Result<Vec<Self>> {
        changes.into_iter().map(Self::new).collect()
    }

    fn new(change: AskChange) -> serde_json::Result<Self> {
        Ok(match change {
            AskChange::Open(ask) => Self::Open(PreparedAsk::new(ask)?),
            AskChange::Close { id, state, at, answer } => {
                let answer = answer.as_deref().map(PreparedAnswer::new).transpose()?;
                Self::Close { id, state, at, answer }
            }
        })
    }
}

impl PreparedAsk {
    fn new(mut ask: NewAsk) -> serde_json::Result<Self> {
        let details = ask.details.take();
        Ok(Self {
            rules: rules_text(&ask.rules)?,
            details: details.as_deref().map(serde_json::to_string).transpose()?,
            ask,
        })
    }
}

impl PreparedAnswer {
    fn new(answer: &AskAnswer) -> serde_json::Result<Self> {
        let by = answer.by.as_ref().map(|by| Arc::clone(&by.id));
        Ok(Self { by, json: serde_json::to_string(answer)? })
    }
}

impl PreparedMissingAsks {
    /// Serializes the asks.
    pub fn new(missing: MissingAsks) -> serde_json::Result<Self> {
        let MissingAsks { header, row, revision, asks, at } = missing;
        let asks = asks.into_iter().map(PreparedAsk::new).collect::<serde_json::Result<_>>()?;
        Ok(Self { header, row, revision, asks, at })
    }
}

impl PreparedAskRevision {
    /// Serializes the rules.
    pub fn new(revision: AskRevision) -> serde_json::Result<Self> {
        Ok(Self { rules: rules_text(&revision.rules)?, revision })
    }
}

fn rules_text(rules: &AskRules) -> serde_json::Result<Option<String>> {
    let ruled = Some(rules).filter(|rules| !rules.is_empty());
    ruled.map(serde_json::to_string).transpose()
}
