//! The one minijinja environment, with the bounds that the engine itself does not have.
//!
//! Fuel counts instructions, so it bounds loops of templates but not what one filter or operator
//! does. Filters that gather, join or repeat are therefore wrapped: each refuses before it
//! allocates. Operators cannot be wrapped; the engine refuses to repeat a text beyond 100 MB.

use std::sync::LazyLock;

use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, filters};

use super::json::{Allowance, to_json, to_text};
use super::scope::bytes_max_of;

/// Instructions one evaluation may take; 1.6 ms when measured.
pub(super) const FUEL: u64 = 100_000;

/// Longest sequence that a gathering filter takes.
const ITEMS_MAX: usize = 1_000_000;

/// Widest field that `format` may fill and deepest column of `indent`.
const WIDTH_MAX: usize = 1_000;

/// Filters and functions with nothing to offer here, or whose cost has no bound: `namespace`
/// carries a growing text from one turn of a loop to the next.
const REMOVED_FILTERS: [&str; 3] = ["batch", "slice", "pprint"];
const REMOVED_FUNCTIONS: [&str; 2] = ["namespace", "debug"];

/// Gathering filters, and the name under which the wrapper finds the original.
const GATHERING: [(&str, &str); 16] = [
    ("list", "engine's list"),
    ("sort", "engine's sort"),
    ("sum", "engine's sum"),
    ("min", "engine's min"),
    ("max", "engine's max"),
    ("first", "engine's first"),
    ("last", "engine's last"),
    ("reverse", "engine's reverse"),
    ("unique", "engine's unique"),
    ("groupby", "engine's groupby"),
    ("dictsort", "engine's dictsort"),
    ("map", "engine's map"),
    ("select", "engine's select"),
    ("reject", "engine's reject"),
    ("selectattr", "engine's selectattr"),
    ("rejectattr", "engine's rejectattr"),
];

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

/// The environment all expressions are compiled in, and templates start from.
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
        Some(text) => out.write_str(text).map_err(Error::from),
        // `{{ a if b }}` without an else; any other undefined value was refused before.
        None if value.is_undefined() => Ok(()),
        None => out.write_str(&to_text(value, bytes_max_of(state))?).map_err(Error::from),
    });
    REMOVED_FILTERS.iter().for_each(|name| environment.remove_filter(name));
    REMOVED_FUNCTIONS.iter().for_each(|name| environment.remove_global(name));
    add_originals(&mut environment);
    for (name, original) in GATHERING {
        environment.add_filter(
            name,
            move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
                let args = args.into_values();
                bounded_length(&args)?;
                state.apply_filter(original, &args)
            },
        );
    }
    environment.add_filter("join", join);
    environment.add_filter("replace", replace);
    environment.add_filter("indent", indent);
    environment.add_filter("format", format);
    environment.add_filter("string", string);
    environment.add_filter("tojson", tojson);
    environment
}

fn add_originals(environment: &mut Environment<'static>) {
    environment.add_filter("engine's list", filters::list);
    environment.add_filter("engine's sort", filters::sort);
    environment.add_filter("engine's sum", filters::sum);
    environment.add_filter("engine's min", filters::min);
    environment.add_filter("engine's max", filters::max);
    environment.add_filter("engine's first", filters::first);
    environment.add_filter("engine's last", filters::last);
    environment.add_filter("engine's reverse", filters::reverse);
    environment.add_filter("engine's unique", filters::unique);
    environment.add_filter("engine's groupby", filters::groupby);
    environment.add_filter("engine's dictsort", filters::dictsort);
    environment.add_filter("engine's map", filters::map);
    environment.add_filter("engine's select", filters::select);
    environment.add_filter("engine's reject", filters::reject);
    environment.add_filter("engine's selectattr", filters::selectattr);
    environment.add_filter("engine's rejectattr", filters::rejectattr);
    environment.add_filter("engine's format", filters::format);
    environment.add_filter("engine's indent", filters::indent);
    environment.add_filter("engine's replace", filters::replace);
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

fn bounded_length(args: &[Value]) -> Result<(), Error> {
    match args.first() {
        Some(value) if value.kind() == ValueKind::String => Ok(()),
        Some(value) if value.len().is_some_and(|length| length > ITEMS_MAX) => {
            Err(refused(format!("more than {ITEMS_MAX} items")))
        }
        _ => Ok(()),
    }
}

fn bounded_text(state: &State<'_, '_>, bytes: Option<usize>) -> Result<(), Error> {
    let bytes_max = bytes_max_of(state);
    match bytes {
        Some(bytes) if bytes <= bytes_max => Ok(()),
        _ => Err(refused(format!("text larger than {bytes_max} bytes"))),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a filter's signature is the engine's")]
fn join(
    state: &mut State<'_, '_>,
    value: &Value,
    joiner: Option<&str>,
    attribute: Option<&str>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let joiner = joiner.or(kwargs.get("d")?).unwrap_or_default();
    let attribute = attribute.or(kwargs.get("attribute")?);
    kwargs.assert_all_used()?;
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let mut joined = String::new();
    for (index, item) in value.try_iter()?.enumerate() {
        let item = match attribute {
            Some(attribute) => item.get_attr(attribute)?,
            None => item,
        };
        if index > 0 {
            joined.push_str(joiner);
        }
        joined.push_str(&to_text(&item, bytes_max_of(state))?);
        bounded_text(state, Some(joined.len()))?;
    }
    Ok(joined)
}

fn replace(state: &mut State<'_, '_>, value: &Value, from: &str, to: &str) -> Result<Value, Error> {
    let text = value.as_str().unwrap_or_default();
    let hits = text.matches(from).count();
    let added = hits.checked_mul(to.len().saturating_sub(from.len()));
    bounded_text(state, added.and_then(|added| text.len().checked_add(added)))?;
    state.apply_filter("engine's replace", &[value.clone(), Value::from(from), Value::from(to)])
}

fn indent(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    let (text, width, _, _, kwargs): (&str, Option<usize>, Option<bool>, Option<bool>, Kwargs) =
        minijinja::value::from_args(&args)?;
    let width = width.or(kwargs.get("width")?).unwrap_or(4);
    if width > WIDTH_MAX {
        return Err(refused(format!("indent by more than {WIDTH_MAX}")));
    }
    let added = text.lines().count().checked_mul(width);
    bounded_text(state, added.and_then(|added| text.len().checked_add(added)))?;
    state.apply_filter("engine's indent", &args)
}

fn format(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    let pattern = args.first().and_then(Value::as_str).unwrap_or_default();
    let wide = pattern
        .split(|character: char| !character.is_ascii_digit())
        .any(|digits| !digits.is_empty() && digits.parse().map_or(true, |n: usize| n > WIDTH_MAX));
    if wide || pattern.contains('*') {
        return Err(refused(format!("format wider than {WIDTH_MAX}")));
    }
    state.apply_filter("engine's format", &args)
}

fn string(state: &mut State<'_, '_>, value: &Value) -> Result<String, Error> {
    Ok(to_text(value, bytes_max_of(state))?)
}

#[expect(clippy::needless_pass_by_value, reason = "a filter's signature is the engine's")]
fn tojson(
    state: &mut State<'_, '_>,
    value: &Value,
    indent: Option<&Value>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let indented = indent.or(kwargs.get("indent")?).is_some_and(Value::is_true);
    kwargs.assert_all_used()?;
    let json = to_json(value, &mut Allowance::new(bytes_max_of(state)))?;
    Ok(if indented { format!("{json:#}") } else { json.to_string() })
}
