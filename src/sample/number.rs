//! Numbers within bounds.

use serde_json::Value;

use super::Keywords;

/// What a number is when nothing forbids it.
const PREFERRED: f64 = 1.0;

/// Steps that are tried to make multiples of a fraction whole.
const WHOLE_AFTER_MAX: u32 = 1_000;

/// Integers beyond are not exact as floats.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A bound, and whether the number may be equal to it.
#[derive(Clone, Copy)]
struct Bound {
    at: f64,
    inclusive: bool,
}

/// Makes a number within the bounds, the next ones for further variants.
pub(super) fn number(
    keywords: &Keywords,
    is_integer: bool,
    variant: usize,
) -> Result<Value, String> {
    let (lower, upper) = bounds(keywords);
    json_of(match step_of(keywords, is_integer) {
        Some(step) => stepped(step, lower, upper, variant),
        None => free(lower, upper, variant),
    })
}

/// Makes a number that is not whole, when the bounds leave room.
pub(super) fn fraction(keywords: &Keywords, variant: usize) -> Result<Value, String> {
    let (lower, upper) = bounds(keywords);
    json_of(match (lower, upper) {
        (Some(lower), Some(upper)) => free(
            Some(Bound { inclusive: false, ..lower }),
            Some(Bound { inclusive: false, ..upper }),
            variant + 1,
        ),
        _ => match step_of(keywords, false) {
            Some(step) => stepped(step, lower, upper, variant + 1),
            None => free(lower, upper, variant).floor() + if lower.is_some() { 1.5 } else { -0.5 },
        },
    })
}

fn bounds(keywords: &Keywords) -> (Option<Bound>, Option<Bound>) {
    let lower = bound(keywords, "minimum", "exclusiveMinimum", |one, other| one > other);
    let upper = bound(keywords, "maximum", "exclusiveMaximum", |one, other| one < other);
    (lower, upper)
}

fn json_of(float: f64) -> Result<Value, String> {
    let is_whole = float.fract() == 0.0 && float.abs() < EXACT_MAX;
    if is_whole {
        return Ok(Value::from(float as i64));
    }
    serde_json::Number::from_f64(float)
        .map(Value::Number)
        .ok_or_else(|| "the bounds allow no number".to_owned())
}

fn bound(
    keywords: &Keywords,
    inclusive: &str,
    exclusive: &str,
    is_stricter: fn(f64, f64) -> bool,
) -> Option<Bound> {
    let float = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
    let inclusive = float(inclusive).map(|at| Bound { at, inclusive: true });
    let exclusive = float(exclusive).map(|at| Bound { at, inclusive: false });
    match (inclusive, exclusive) {
        (Some(loose), Some(strict)) if is_stricter(loose.at, strict.at) => Some(loose),
        (loose, strict) => strict.or(loose),
    }
}

/// The distance of allowed numbers, if they have one.
fn step_of(keywords: &Keywords, is_integer: bool) -> Option<f64> {
    let step = keywords.get("multipleOf").and_then(Value::as_f64).filter(|step| *step > 0.0);
    match step {
        None => is_integer.then_some(1.0),
        Some(step) if is_integer => (1..=WHOLE_AFTER_MAX)
            .map(|times| step * f64::from(times))
            .find(|multiple| multiple.fract() == 0.0)
            .or(Some(step)),
        Some(step) => Some(step),
    }
}

fn stepped(step: f64, lower: Option<Bound>, upper: Option<Bound>, variant: usize) -> f64 {
    // a little tolerance, so that 0.3 counts as three times 0.1
    const TOLERANCE: f64 = 1e-9;
    let lowest = lower.map(|bound| {
        let steps = (bound.at / step - TOLERANCE).ceil();
        if !bound.inclusive && steps * step <= bound.at { steps + 1.0 } else { steps }
    });
    let highest = upper.map(|bound| {
        let steps = (bound.at / step + TOLERANCE).floor();
        if !bound.inclusive && steps * step >= bound.at { steps - 1.0 } else { steps }
    });
    let mut first = (PREFERRED / step - TOLERANCE).ceil();
    first = highest.map_or(first, |highest| first.min(highest));
    first = lowest.map_or(first, |lowest| first.max(lowest));
    let up = first + variant as f64;
    // upwards while there is room, then downwards from the first
    let steps = match highest {
        Some(highest) if up > highest => first - (up - highest),
        _ => up,
    };
    steps * step
}

fn free(lower: Option<Bound>, upper: Option<Bound>, variant: usize) -> f64 {
    let shift = variant as f64;
    match (lower, upper) {
        (None, None) => PREFERRED + shift,
        (Some(lower), None) if PREFERRED > lower.at => PREFERRED + shift,
        (Some(lower), None) => lower.at + if lower.inclusive { shift } else { shift + 1.0 },
        (None, Some(upper)) if PREFERRED < upper.at => PREFERRED - shift,
        (None, Some(upper)) => upper.at - if upper.inclusive { shift } else { shift + 1.0 },
        (Some(lower), Some(upper)) => {
            let is_inside = lower.at < PREFERRED && PREFERRED < upper.at;
            if is_inside && variant == 0 {
                return PREFERRED;
            }
            if lower.inclusive && variant == 0 {
                return lower.at;
            }
            // halves what is left above the lower bound, so that every variant finds room
            let share = 0.5_f64.powi(i32::try_from(variant + 1).unwrap_or(i32::MAX));
            lower.at + (upper.at - lower.at) * share
        }
    }
}
