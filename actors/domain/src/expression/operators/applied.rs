//! Filters that replace operators: the same results, with charges.

use std::borrow::Cow;
use std::sync::LazyLock;

use minijinja::value::Value;
use minijinja::{Error, State, context};

use crate::effort;
use crate::expression::bare;
use crate::expression::charged::charged;

/// Longest tuple that repetition may create, because reading a tuple is not charged.
const TUPLE_ITEMS_MAX: usize = 1_000;

/// An operator of the engine, for operands of any type.
struct Original(LazyLock<minijinja::Expression<'static, 'static>>);

static PRODUCT: Original = Original(LazyLock::new(|| compiled("left * right")));
static SUM: Original = Original(LazyLock::new(|| compiled("left + right")));
static CONCATENATION: Original = Original(LazyLock::new(|| compiled("left ~ right")));

#[expect(clippy::expect_used, reason = "constants that a test evaluates")]
fn compiled(source: &'static str) -> minijinja::Expression<'static, 'static> {
    bare::shared().compile_expression(source).expect("an operator and two names")
}

impl Original {
    fn of(&self, left: &Value, right: &Value) -> Result<Value, Error> {
        // without the place inside the constant source
        let elsewhere = |error: Error| match error.detail() {
            Some(detail) => Error::new(error.kind(), detail.to_owned()),
            None => Error::from(error.kind()),
        };
        self.0.eval(context! { left, right }).map_err(elsewhere)
    }
}

/// Multiplies. Charges for the copies here, and again when a list of them is read: a loop over the
/// copies of a list that appears empty, because the budget is spent, could not be stopped.
pub(super) fn times(
    state: &mut State<'_, '_>,
    left: &Value,
    right: &Value,
) -> Result<Value, Error> {
    if let Some(product) = of_integers(left, right, i64::checked_mul) {
        return Ok(product);
    }
    pay_for_copies(state, left, right)?;
    pay_for_copies(state, right, left)?;
    PRODUCT.of(left, right).map(charged)
}

/// Adds numbers and joins texts. Lists charge by themselves.
pub(super) fn plus(state: &mut State<'_, '_>, left: &Value, right: &Value) -> Result<Value, Error> {
    if let Some(sum) = of_integers(left, right, i64::checked_add) {
        return Ok(sum);
    }
    match (left.as_str(), right.as_str()) {
        (Some(left), Some(right)) => joined(state, left, right),
        (Some(_) | None, _) => SUM.of(left, right),
    }
}

/// Concatenates two values as texts.
pub(super) fn concat(
    state: &mut State<'_, '_>,
    left: &Value,
    right: &Value,
) -> Result<Value, Error> {
    if left.is_undefined() || right.is_undefined() {
        // a lookup in an undefined value gives an error with its name
        let named = || [left, right].into_iter().find(|it| it.is_undefined())?.get_attr("").err();
        return CONCATENATION.of(left, right).map_err(|error| named().unwrap_or(error));
    }
    joined(state, &shown(left), &shown(right))
}

fn shown(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}

fn joined(state: &State<'_, '_>, left: &str, right: &str) -> Result<Value, Error> {
    let bytes = left.len().checked_add(right.len());
    bare::paid(effort::charge_text(bytes.unwrap_or(usize::MAX)))?;
    bare::bounded_text(state, bytes)?;
    Ok(Value::from([left, right].concat()))
}

fn of_integers(
    left: &Value,
    right: &Value,
    reckon: impl Fn(i64, i64) -> Option<i64>,
) -> Option<Value> {
    if !left.is_integer() || !right.is_integer() {
        return None;
    }
    let operand = |value: &Value| i64::try_from(value.clone()).ok();
    reckon(operand(left)?, operand(right)?).map(Value::from)
}

fn pay_for_copies(state: &State<'_, '_>, value: &Value, count: &Value) -> Result<(), Error> {
    let Some(count) = count.as_usize() else { return Ok(()) };
    if let Some(text) = value.as_str() {
        let bytes = text.len().checked_mul(count);
        bare::bounded_text(state, bytes)?;
        return bare::paid(effort::charge_text(bytes.unwrap_or(usize::MAX)));
    }
    let items = value.len().unwrap_or_default().saturating_mul(count);
    if value.is_tuple() && items > TUPLE_ITEMS_MAX {
        let message = format!("a tuple of more than {TUPLE_ITEMS_MAX} items; repeat a list");
        return Err(bare::refused(message));
    }
    bare::paid(effort::charge_all(items, 1))
}
