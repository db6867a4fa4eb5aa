//! The minijinja environment before filters and tests are added, and the checks that all of them
//! share.

use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior};

use super::json::to_text;
use super::scope::bytes_max_of;
use crate::effort;

/// Maximum number of instructions of an evaluation; 1.6 ms when measured.
const FUEL: u64 = 100_000;

/// Bytes of text per step, when written.
const WRITTEN_BYTES: usize = 64;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

/// Returns the environment. Its filters and tests are the engine's, and do not charge.
pub(super) fn shared() -> &'static Environment<'static> {
    &ENVIRONMENT
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    // Names the undefined part in an error; costs nothing before there is one.
    environment.set_debug(true);
    environment.set_formatter(|out, state, value| match value.as_str() {
        // captured blocks are charged only here
        Some(text) => {
            paid(effort::charge_all(1 + text.len() / WRITTEN_BYTES, 1))?;
            out.write_str(text).map_err(Error::from)
        }
        // `{{ a if b }}` without an else; any other undefined value has failed before.
        None if value.is_undefined() => Ok(()),
        None => out.write_str(&to_text(value, bytes_max_of(state))?).map_err(Error::from),
    });
    environment
}

/// Marks the budget as exceeded if the engine ran out of fuel.
pub(super) fn pay_for_fuel(error: &Error) {
    if error.kind() == ErrorKind::OutOfFuel {
        effort::exceed(FUEL);
    }
}

/// Returns an error that ends the evaluation if a charge failed. The caller of the evaluation
/// replaces the message.
pub(super) fn paid(paid: bool) -> Result<(), Error> {
    if paid { Ok(()) } else { Err(refused("too costly")) }
}

pub(super) fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

pub(super) fn bounded_text(state: &State<'_, '_>, bytes: Option<usize>) -> Result<(), Error> {
    let bytes_max = bytes_max_of(state);
    match bytes {
        Some(bytes) if bytes <= bytes_max => Ok(()),
        _ => Err(refused(format!("text larger than {bytes_max} bytes"))),
    }
}
