//! Questions whether requests are allowed.

use super::{Pairs, refuse_misnamed};
use crate::api::catalogue::Method;
use crate::api::error::ApiError;

/// Requests whose permission is asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct PermissionQuery(pub Vec<Question>);

/// A request, as it would be sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Question {
    /// Method and path, as they were asked for.
    pub text: String,
    /// A HEAD is answered by the route of its GET.
    pub method: Method,
    pub path: String,
}

/// Maximum number of requests in a question.
pub(crate) const PERMISSIONS_MAX: usize = 100;

impl PermissionQuery {
    /// Parses the query.
    pub fn parse(pairs: &Pairs) -> Result<Self, ApiError> {
        const NAME: &str = "request";
        refuse_misnamed(pairs, &[NAME])?;
        let refusal = |what: String| ApiError::InvalidQuery { name: NAME.to_owned(), what };
        if pairs.len() > PERMISSIONS_MAX {
            return Err(refusal(format!("is given more than {PERMISSIONS_MAX} times")));
        }
        let request = |(_, text): &(String, String)| {
            let (method, path) = text.split_once(' ')?;
            let method = Method::parse(if method == "HEAD" { "GET" } else { method })?;
            let path = path.starts_with('/').then(|| path.to_owned())?;
            Some(Question { text: text.clone(), method, path })
        };
        let what = "must be a method and a path, as in \"POST /workflows/order/execute\"";
        let read = pairs.iter().map(|pair| request(pair).ok_or_else(|| refusal(what.to_owned())));
        read.collect::<Result<_, _>>().map(Self)
    }
}
