//! The measured kinds of work: requests, marks of correct answers, targets.

use std::fmt;
use std::str::FromStr;

use crate::database::Store;
use crate::server::Kind;
use crate::token;

/// Unit of work that a connection repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Executes three pure steps.
    Noop3,
    /// [`Self::Noop3`] with a token, compared with greenroom without one.
    Token,
    /// [`Self::Noop3`] with all telemetry, compared with greenroom without any.
    Observed,
    /// [`Self::Observed`] with a subscriber of all spans.
    Watched,
    /// Executes until the step suspends, then resumes to the end.
    Approval,
    /// [`Self::Approval`] with several servers, resumed at another one than it was executed at,
    /// compared with the same one.
    Forwarded,
    /// Lets an agent write a text.
    Agent,
    /// Reads an agent's text of 20 words as it is written.
    Stream,
}

impl Work {
    pub(crate) const ALL: [Self; 8] = [
        Self::Noop3,
        Self::Token,
        Self::Observed,
        Self::Watched,
        Self::Approval,
        Self::Forwarded,
        Self::Agent,
        Self::Stream,
    ];

    /// Returns the kinds that are measured with a store and a number of servers; those that are not
    /// depend on it little.
    pub(crate) fn of(store: Store, nodes: usize) -> &'static [Self] {
        match store {
            Store::Sqlite => &[
                Self::Noop3,
                Self::Token,
                Self::Observed,
                Self::Watched,
                Self::Approval,
                Self::Agent,
                Self::Stream,
            ],
            Store::Postgres if nodes == 1 => {
                &[Self::Noop3, Self::Approval, Self::Agent, Self::Stream]
            }
            Store::Postgres => {
                &[Self::Noop3, Self::Approval, Self::Forwarded, Self::Agent, Self::Stream]
            }
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Noop3 => "noop3",
            Self::Token => "token",
            Self::Observed => "observed",
            Self::Watched => "watched",
            Self::Approval => "approval",
            Self::Forwarded => "forwarded",
            Self::Agent => "agent",
            Self::Stream => "stream",
        }
    }

    /// Title of the row.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Noop3 => "execute noop3",
            Self::Token => "noop3 with a token, beside noop3",
            Self::Observed => "noop3 with metrics, logs and spans, beside none",
            Self::Watched => "noop3 with a watcher, too, beside none",
            Self::Approval => "approval cycle",
            Self::Forwarded => "approval cycle, resumed at another server",
            Self::Agent => "agent text",
            Self::Stream => "20-delta stream",
        }
    }

    /// Returns what is compared: the baseline, and what is measured.
    pub(crate) fn servers(self, nodes: usize) -> [Kind; 2] {
        match self {
            Self::Forwarded => [Kind::Members, Kind::Scattered],
            Self::Noop3 | Self::Approval | Self::Agent | Self::Stream if nodes > 1 => {
                [Kind::Greenroom, Kind::Members]
            }
            Self::Token => [Kind::Greenroom, Kind::Guarded],
            Self::Observed => [Kind::Quiet, Kind::Observed],
            Self::Watched => [Kind::Quiet, Kind::Watched],
            Self::Noop3 | Self::Approval | Self::Agent | Self::Stream => {
                [Kind::Bare, Kind::Greenroom]
            }
        }
    }

    /// Returns the target of the measured rate, relative to the baseline.
    pub(crate) fn target(self, store: Store, nodes: usize, connections: usize) -> Option<f64> {
        let target = match self {
            Self::Forwarded => return None,
            _ if nodes > 1 => 0.85,
            Self::Noop3 | Self::Approval | Self::Agent
                if store == Store::Postgres && connections == 1 =>
            {
                0.7
            }
            Self::Approval if store == Store::Postgres => 0.75,
            Self::Noop3 if store == Store::Postgres => 0.8,
            Self::Noop3 if connections > 1 => 1.0,
            Self::Noop3 | Self::Agent => 0.8,
            Self::Approval | Self::Token => 0.9,
            Self::Observed | Self::Watched => 0.85,
            Self::Stream => 0.6,
        };
        Some(target)
    }

    /// Returns the target of the time that a resume takes longer at another server than the one
    /// that runs the execution. With more connections it would be that of waiting for a core.
    pub(crate) fn added_target_ms(self, connections: usize) -> Option<f64> {
        (self == Self::Forwarded && connections == 1).then_some(0.4)
    }

    /// Returns the target of PostgreSQL's CPU for a unit, in microseconds.
    pub(crate) fn database_target_us(self, connections: usize) -> Option<f64> {
        (self == Self::Noop3 && connections == 64).then_some(45.0)
    }

    /// Returns the first request of a unit.
    pub(crate) fn first(self, kind: Kind) -> Request {
        match self {
            Self::Noop3 | Self::Token | Self::Observed | Self::Watched => {
                let request = Request::new("/workflows/noop3/execute", r#"{"input":{"n":5}}"#);
                if kind == Kind::Guarded { request.with_token() } else { request }
            }
            Self::Approval | Self::Forwarded => Request::new(
                "/workflows/approval/execute",
                r#"{"input":{"employee":"ada","amount":900}}"#,
            ),
            Self::Agent => Request::new(
                "/agents/assistant/text",
                r#"{"input":"Write one friendly sentence to Ada about her travel expenses."}"#,
            ),
            Self::Stream => Request::new(
                "/agents/assistant/stream",
                r#"{"input":"Write one friendly sentence to Ada, who was in Rome, about her expenses of this month and of the last."}"#,
            ),
        }
    }

    /// Text in every correct answer to the first request.
    pub(crate) fn mark(self) -> &'static [u8] {
        match self {
            Self::Noop3 | Self::Token | Self::Observed | Self::Watched => br#""result":{"n":8}"#,
            Self::Approval | Self::Forwarded => br#""status":"suspended""#,
            Self::Agent => br#""text":"Write one friendly sentence"#,
            Self::Stream => br#""type":"finish","#,
        }
    }

    /// Returns the second request of a unit, made from the answer to the first.
    pub(crate) fn second(self, answer: &[u8]) -> Option<Result<Request, &'static str>> {
        match self {
            Self::Approval | Self::Forwarded => Some(execution_id(answer).map(|id| {
                let path = format!("/workflows/approval/executions/{id}/resume");
                Request::new(&path, r#"{"resumeData":{"approved":true}}"#)
            })),
            Self::Noop3
            | Self::Token
            | Self::Observed
            | Self::Watched
            | Self::Agent
            | Self::Stream => None,
        }
    }

    /// Text in every correct answer to the second request.
    pub(crate) const SECOND_MARK: &'static [u8] = br#""status":"completed""#;
}

impl fmt::Display for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Work {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|work| work.name() == text).ok_or(())
    }
}

/// The bytes of a request.
#[derive(Debug)]
pub(crate) struct Request(pub(crate) Vec<u8>);

impl Request {
    fn new(path: &str, body: &str) -> Self {
        let length = body.len();
        let text = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        Self(text.into_bytes())
    }

    /// Adds the token of the guarded server.
    fn with_token(self) -> Self {
        let header = format!("\r\nauthorization: Bearer {}\r\n\r\n", token::signed());
        let Self(mut bytes) = self;
        if let Some(end) = find(&bytes, b"\r\n\r\n") {
            bytes.splice(end..end + 4, header.into_bytes());
        }
        Self(bytes)
    }
}

/// Finds the id without parsing: the generator's own cost is not what is measured.
fn execution_id(answer: &[u8]) -> Result<&str, &'static str> {
    const KEY: &[u8] = br#""executionId":""#;
    let begin = find(answer, KEY).ok_or("an answer names no execution")? + KEY.len();
    let length = find(&answer[begin..], b"\"").ok_or("an answer ends within an id")?;
    std::str::from_utf8(&answer[begin..begin + length]).map_err(|_| "an id is not UTF-8")
}

/// Returns the first position of a text in another.
pub(crate) fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
