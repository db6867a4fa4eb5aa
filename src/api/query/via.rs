//! The parameter that selects by the API through which something was started.

use super::{Pairs, read as read_parameter};
use crate::api::error::ApiError;
use crate::faces::is_via;

/// Rule for the names of APIs.
const NAMES: &str = "must be openai, mcp, or mcp: and the name of a face, as mcp:desk";

/// Reads `via`. Faces that are no longer configured are known: what they started is still there.
pub(super) fn read(pairs: &Pairs) -> Result<Option<String>, ApiError> {
    read_parameter(pairs, "via", NAMES, |text| is_via(text).then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::query::assert_refused;

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let parse = |name: &str, value: &str| read(&[(name.to_owned(), value.to_owned())]);
        for name in ["openai", "mcp", "mcp:desk"] {
            assert_eq!(parse("via", name), Ok(Some(name.to_owned())));
        }
        assert_eq!(read(&[]), Ok(None));
        assert_refused(&[("via", "rest"), ("via", "mcp:")], NAMES, parse);
    }
}
