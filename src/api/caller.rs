//! Who asks.

use crate::api::error::ApiError;
use crate::api::ids::{check_id, wrong_with};
use crate::api::query::{Pairs, value_of};

/// The user that a request is made for: without authentication, whoever it names. Its body counts
/// more than its address.
pub fn user_of(pairs: &Pairs, in_body: Option<&str>) -> Result<Option<String>, ApiError> {
    let name = "userId";
    let (named, checked) = match (in_body, value_of(pairs, name)) {
        (Some(named), _) => (named, check_id(name, named)),
        (None, Some(named)) => (named, check_in_query(name, named)),
        (None, None) => return Ok(None),
    };
    checked.map(|()| Some(named.to_owned()))
}

fn check_in_query(name: &str, id: &str) -> Result<(), ApiError> {
    let refusal = |what| Err(ApiError::InvalidQuery { name: name.to_owned(), what });
    wrong_with(id).map_or(Ok(()), refusal)
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
            (&empty, None, "Invalid query parameter userId: must be 1 to 200"),
            (&query, Some(""), "Invalid request body: userId: must be 1 to 200"),
            (&query, Some("a/b"), "Invalid request body: userId: must not contain /"),
        ];
        for (pairs, in_body, start) in rows {
            let text = user_of(pairs, in_body).unwrap_err().to_string();
            assert!(text.starts_with(start), "{text}");
        }
    }
}
