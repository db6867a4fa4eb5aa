//! Who asks.

use crate::api::error::ApiError;
use crate::api::ids::{ID_CHARS_MAX, is_id};
use crate::api::query::{Pairs, value_of};

/// The user that a request is made for: without authentication, whoever it names. Its body counts
/// more than its address.
pub fn user_of(pairs: &Pairs, in_body: Option<&str>) -> Result<Option<String>, ApiError> {
    let what = || format!("must have 1 to {ID_CHARS_MAX} characters, no control character, no /");
    match (in_body, value_of(pairs, "userId")) {
        (Some(named), _) if is_id(named) => Ok(Some(named.to_owned())),
        (Some(_), _) => Err(ApiError::body("userId", what())),
        (None, Some(named)) if is_id(named) => Ok(Some(named.to_owned())),
        (None, Some(_)) => Err(ApiError::InvalidQuery { name: "userId".to_owned(), what: what() }),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_whoever_the_request_names() {
        let query = [("userId".to_owned(), "ann".to_owned())];
        let empty = [("userId".to_owned(), String::new())];
        assert_eq!(user_of(&query, Some("ben")), Ok(Some("ben".to_owned())));
        assert_eq!(user_of(&query, None), Ok(Some("ann".to_owned())));
        assert_eq!(user_of(&[], None), Ok(None));
        let rows: [(&Pairs, Option<&str>, &str); 3] = [
            (&empty, None, "Invalid query parameter userId: must have 1 to 200"),
            (&query, Some(""), "Invalid request body: userId: must have 1 to 200"),
            (&query, Some("a/b"), "Invalid request body: userId: must have 1 to 200"),
        ];
        for (pairs, in_body, start) in rows {
            let text = user_of(pairs, in_body).unwrap_err().to_string();
            assert!(text.starts_with(start), "{text}");
        }
    }
}
