//! Numbers within bounds.

use serde_json::Value;

use super::Keywords;

/// The number to start from if the bounds allow it.
const PREFERRED: f64 = 1.0;

/// Halvings of the distance between candidates until some lie between the bounds.
const HALVINGS_MAX: usize = 64;

/// Relative error of a multiple that still counts as exact, so that 0.3 is three times 0.1.
const TOLERANCE: f64 = 1e-9;

/// Integers beyond are not exact as floats.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Makes a number within the bounds, near 1; further variants are the next multiples of
/// `multipleOf` or, without it, of 1 or of a power of a half.
pub(super) fn number(
    keywords: &Keywords,
    is_integer: bool,
    variant: usize,
) -> Result<Value, String> {
    let float = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
    let given = float("multipleOf").filter(|step| *step > 0.0);
    let mut step = given.unwrap_or(1.0);
    let mut range = multiples(&float, step);
    if given.is_none() && !is_integer {
        for _ in 0..HALVINGS_MAX {
            if range.1 - range.0 >= variant as f64 {
                break;
            }
            step /= 2.0;
            range = multiples(&float, step);
        }
    }
    let (lowest, highest) = range;
    let first = (PREFERRED / step - TOLERANCE).ceil().min(highest).max(lowest);
    let up = first + variant as f64;
    // upwards while there is room, then downwards from the first
    let steps = if up > highest { first - (up - highest) } else { up };
    let float = steps * step;
    if float.fract() == 0.0 && float.abs() < EXACT_MAX {
        return Ok(Value::from(float as i64));
    }
    let number = serde_json::Number::from_f64(float).map(Value::Number);
    number.ok_or_else(|| "the bounds allow no number".to_owned())
}

/// The lowest and the highest multiple of a step within the bounds, in steps.
fn multiples(float: &impl Fn(&str) -> Option<f64>, step: f64) -> (f64, f64) {
    let (mut lowest, mut highest) = (f64::NEG_INFINITY, f64::INFINITY);
    if let Some(least) = float("minimum") {
        lowest = (least / step - TOLERANCE).ceil();
    }
    if let Some(below) = float("exclusiveMinimum") {
        lowest = lowest.max((below / step + TOLERANCE).floor() + 1.0);
    }
    if let Some(most) = float("maximum") {
        highest = (most / step + TOLERANCE).floor();
    }
    if let Some(above) = float("exclusiveMaximum") {
        highest = highest.min((above / step - TOLERANCE).ceil() - 1.0);
    }
    (lowest, highest)
}
