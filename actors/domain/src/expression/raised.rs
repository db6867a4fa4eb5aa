//! `fail(message)`: a failure that the definition raises itself.

use std::fmt;

use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, State};

use super::bare::{bounded_text, paid, refused};
use super::json::to_text;
use super::scope::bytes_max_of;
use crate::effort;
use crate::failure::message::{ATTEMPT_ERROR_BYTES_MAX, shortened};

/// Longest message; the rest is dropped.
const RAISED_BYTES_MAX: usize = ATTEMPT_ERROR_BYTES_MAX;

/// The message that a definition gave, as the source of an error of the engine.
#[derive(Debug)]
pub(super) struct Raised(pub(super) String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

impl Raised {
    /// Returns the message behind an error, also inside a filter.
    pub(super) fn cause_of(error: &Error) -> Option<&Self> {
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            if let Some(raised) = inner.downcast_ref() {
                return Some(raised);
            }
            cause = inner.source();
        }
        None
    }
}

/// Adds the function.
pub(super) fn add_function(environment: &mut Environment<'static>) {
    environment.add_function("fail", fail);
}

fn fail(state: &mut State<'_, '_>, message: &Value) -> Result<Value, Error> {
    if message.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let text = to_text(message, bytes_max_of(state))?;
    paid(effort::charge_text(text.len()))?;
    bounded_text(state, Some(text.len()))?;
    let text = shortened(text.trim(), RAISED_BYTES_MAX);
    if text.is_empty() {
        return Err(refused("fail() needs a message"));
    }
    let raised = Raised(text.to_owned());
    Err(Error::from(ErrorKind::InvalidOperation).with_source(raised))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::definition::Mapping;
    use crate::expression::{CompiledMapping, Expression, Scope, Template};
    use crate::failure::{AttemptFailure, ErrorKind};

    fn scope() -> Scope {
        let input =
            json!({ "ok": true, "why": "it is late", "list": [1], "long": "é".repeat(2000) });
        Scope::new().with("input", Arc::new(input))
    }

    #[test]
    fn the_message_is_that_of_the_definition() {
        for (source, said) in [
            ("fail('The customer refused')", "The customer refused"),
            ("'yes' if not input.ok else fail('No: ' ~ input.why)", "No: it is late"),
            ("fail(' two\nlines ')", "two\nlines"),
            ("fail(input.list) | default(1)", "[1]"),
            ("[1, {'a': fail('inside')}]", "inside"),
            ("input.list | map('string') | join(fail('x'))", "x"),
            ("fail(input.nope)", "undefined value in `fail(input.nope)`"),
            ("fail('')", "fail() needs a message in `fail('')`"),
        ] {
            let error = Expression::compile(source).unwrap().evaluate(&scope()).unwrap_err();
            assert!(error.to_string().starts_with(said), "{source}: {error}");
            assert_eq!(error.is_raised, !said.contains("in `"), "{source}");
        }
        let condition = Expression::compile("input.ok and fail('no')").unwrap();
        assert_eq!(condition.holds(&scope()).unwrap_err().to_string(), "no");
        let spared = Expression::compile("input.ok or fail('no')").unwrap();
        assert_eq!(spared.holds(&scope()), Ok(true));
        let template = Template::compile("{% if input.ok %}{{ fail('no') }}{% endif %}").unwrap();
        assert_eq!(template.render(&scope()).unwrap_err().to_string(), "no");
    }

    #[test]
    fn it_has_no_place_and_no_second_attempt() {
        let map = Mapping(json!({ "a": [{ "b": "fail('Sold out')" }] }));
        let error = CompiledMapping::compile(&map).unwrap().evaluate(&scope()).unwrap_err();
        let failure = AttemptFailure::not_evaluated("input: ", &error);
        assert_eq!(failure.message, "Sold out");
        let class = failure.class.unwrap();
        assert_eq!(class.kind, ErrorKind::Expression);
        assert!(class.is_never_retried());
        let other = Expression::compile("input.nope").unwrap().evaluate(&scope()).unwrap_err();
        let other = AttemptFailure::not_evaluated("input: ", &other);
        assert!(!other.class.unwrap().is_never_retried());
    }

    #[test]
    fn a_message_has_a_limit() {
        let raised = |source: &str| {
            let error = Expression::compile(source).unwrap().evaluate(&scope()).unwrap_err();
            error.message
        };
        let exact = format!("fail('x' * {RAISED_BYTES_MAX})");
        assert_eq!(raised(&exact).len(), RAISED_BYTES_MAX);
        let longer = format!("fail('x' * {})", RAISED_BYTES_MAX + 1);
        assert_eq!(raised(&longer), "x".repeat(RAISED_BYTES_MAX));
        assert_eq!(raised("fail(input.long)"), "é".repeat(RAISED_BYTES_MAX / 2));
    }
}
