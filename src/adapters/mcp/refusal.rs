//! Refusals of requests by an authorization server, or by a server that wants another token.

use std::time::Duration;

/// Reason of a request that was not sent, or that the server refuses whatever token it gets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Refusal {
    pub(crate) why: String,
    /// Status of the refusal; `None`: the request was not sent for want of a token.
    pub(crate) status: Option<u16>,
}

impl Refusal {
    /// Returns the reason of a request that the server refuses with a new token, too.
    pub(crate) fn of_new_token() -> Self {
        Self::of_token("it refuses a new token (status 401)")
    }

    /// Returns the reason of a request that the server refuses, while no other token is fetched for so long.
    pub(crate) fn of_newest_token(left: Duration) -> Self {
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        Self::of_token(&format!(
            "it refuses the newest token (status 401), and none is fetched in its place for {seconds} s"
        ))
    }

    fn of_token(what: &str) -> Self {
        let cure = "see which audience and scope the authorization server gives to this client";
        Self { why: format!("{what}: {cure}"), status: Some(401) }
    }
}
