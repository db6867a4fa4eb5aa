//! The minijinja environment, with limits that the engine itself does not have.
//!
//! Fuel counts instructions, so it limits loops of templates, but not the work of one filter, test
//! or operator. Every filter and every test is therefore wrapped by one of the tables below: it
//! charges for what it reads (see [`effort`]), fails before it allocates too much, and its result
//! charges for later reads. Operators cannot be wrapped: those that can grow a value are rewritten
//! (see [`super::operators`]); the others read lists and documents that charge by themselves.

use std::sync::LazyLock;

use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, filters, functions, tests};

use super::bare::{bounded_text, paid, refused};
use super::charged::charged;
use super::json::{Allowance, to_json, to_text};
use super::scope::bytes_max_of;
use super::{bare, members, operators, parsed, raised};
use crate::effort;

/// Longest sequence that a filter accepts.
const ITEMS_MAX: usize = 1_000_000;

/// Maximum width of a field of `format`, and of `indent`.
const WIDTH_MAX: usize = 1_000;

/// Filters and functions that are useless here, or have no limit of cost: `namespace` carries a
/// growing text from one iteration of a loop to the next.
const REMOVED_FILTERS: [&str; 3] = ["batch", "slice", "pprint"];
const REMOVED_FUNCTIONS: [&str; 2] = ["namespace", "debug"];

/// Work of a filter or a test, in addition to what its arguments charge for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walks {
    /// None.
    Nothing,
    /// Reads every character of its first text, several times.
    Text,
    /// Reads the items of its first argument, which charge by themselves, or the characters of a
    /// text.
    Items,
    /// Like `Items`, and compares the items.
    Sorted,
    /// Reads two values from their beginnings.
    Both,
    /// Searches for the first value in the second.
    Search,
}

/// Bytes of text per step, when split into characters.
const TAKEN_APART_BYTES: usize = 4;

/// Number of times that a filter reads a text.
const PASSES: usize = 8;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

/// Returns the environment of all expressions, which templates clone.
pub(super) fn shared() -> &'static Environment<'static> {
    &ENVIRONMENT
}

fn environment() -> Environment<'static> {
    let mut environment = bare::shared().clone();
    REMOVED_FILTERS.iter().for_each(|name| environment.remove_filter(name));
    REMOVED_FUNCTIONS.iter().for_each(|name| environment.remove_global(name));
    add_filters(&mut environment);
    add_tests(&mut environment);
    environment.add_filter("join", join);
    environment.add_filter("string", string);
    environment.add_filter("tojson", tojson);
    operators::add_filters(&mut environment);
    members::add_filter(&mut environment);
    parsed::add_filters(&mut environment);
    raised::add_function(&mut environment);
    environment.add_function("range", |lower: isize, upper: Option<isize>, step: Option<isize>| {
        functions::range(lower, upper, step).map(charged)
    });
    environment.add_function("dict", |value: Option<Value>, kwargs: Kwargs| {
        let length = value.as_ref().and_then(Value::len).unwrap_or(0);
        paid(effort::charge_all(1 + length, 1))?;
        functions::dict(value, kwargs).map(charged)
    });
    environment
}

/// Adds the originals under names that no source can contain, and wrappers under their own names.
macro_rules! wrap {
    ($environment:ident, $add:ident, $wrapped:ident, $($walks:ident: [$($name:literal $original:path),* $(,)?],)*) => {
        $($(
            $environment.$add(concat!("engine's ", $name), $original);
            $environment.$add($name, |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
                $wrapped(state, concat!("engine's ", $name), Walks::$walks, args)
            });
        )*)*
    };
}

fn add_filters(environment: &mut Environment<'static>) {
    environment.add_filter("engine's format", filters::format);
    environment.add_filter("engine's indent", filters::indent);
    environment.add_filter("engine's replace", filters::replace);
    environment.add_filter("replace", replace);
    environment.add_filter("indent", indent);
    environment.add_filter("format", format);
    wrap!(environment, add_filter, filtered,
        Nothing: [
            "safe" filters::safe, "default" filters::default, "d" filters::default,
            "round" filters::round, "abs" filters::abs, "bool" filters::bool,
            "attr" filters::attr,
        ],
        Text: [
            "escape" filters::escape, "e" filters::escape, "lower" filters::lower,
            "upper" filters::upper, "title" filters::title, "capitalize" filters::capitalize,
            "trim" filters::trim, "split" filters::split, "lines" filters::lines,
            "length" filters::length, "count" filters::length, "int" filters::int,
            "float" filters::float,
        ],
        Items: [
            "list" filters::list, "sum" filters::sum, "first" filters::first,
            "last" filters::last, "reverse" filters::reverse, "items" filters::items,
            "map" filters::map, "select" filters::select, "reject" filters::reject,
            "selectattr" filters::selectattr, "rejectattr" filters::rejectattr,
            "chain" filters::chain, "zip" filters::zip,
        ],
        Sorted: [
            "sort" filters::sort, "min" filters::min, "max" filters::max,
            "unique" filters::unique, "groupby" filters::groupby,
            "dictsort" filters::dictsort,
        ],
    );
}

fn add_tests(environment: &mut Environment<'static>) {
    wrap!(environment, add_test, tested,
        Nothing: [
            "undefined" tests::is_undefined, "defined" tests::is_defined,
            "none" tests::is_none, "safe" tests::is_safe, "escaped" tests::is_safe,
            "boolean" tests::is_boolean, "odd" tests::is_odd, "even" tests::is_even,
            "divisibleby" tests::is_divisibleby, "number" tests::is_number,
            "integer" tests::is_integer, "int" tests::is_integer, "float" tests::is_float,
            "string" tests::is_string, "sequence" tests::is_sequence,
            "iterable" tests::is_iterable, "mapping" tests::is_mapping,
            "sameas" tests::is_sameas, "true" tests::is_true, "false" tests::is_false,
            "filter" tests::is_filter, "test" tests::is_test,
        ],
        Text: [
            "startingwith" tests::is_startingwith, "endingwith" tests::is_endingwith,
            "lower" tests::is_lower, "upper" tests::is_upper,
        ],
        Both: [
            "eq" tests::is_eq, "equalto" tests::is_eq, "==" tests::is_eq,
            "ne" tests::is_ne, "!=" tests::is_ne,
            "lt" tests::is_lt, "lessthan" tests::is_lt, "<" tests::is_lt,
            "le" tests::is_le, "<=" tests::is_le,
            "gt" tests::is_gt, "greaterthan" tests::is_gt, ">" tests::is_gt,
            "ge" tests::is_ge, ">=" tests::is_ge,
        ],
        Search: ["in" tests::is_in],
    );
}

fn filtered(
    state: &mut State<'_, '_>,
    original: &str,
    walks: Walks,
    args: Rest<ValueOrKwargs>,
) -> Result<Value, Error> {
    let args = args.into_values();
    walks.pay(&args)?;
    if matches!(walks, Walks::Items | Walks::Sorted) {
        bounded_length(&args)?;
    }
    state.apply_filter(original, &args).map(charged)
}

fn tested(
    state: &mut State<'_, '_>,
    original: &str,
    walks: Walks,
    args: Rest<ValueOrKwargs>,
) -> Result<bool, Error> {
    let args = args.into_values();
    walks.pay(&args)?;
    state.perform_test(original, &args)
}

impl Walks {
    fn pay(self, args: &[Value]) -> Result<(), Error> {
        let bytes = |at: usize| args.get(at).and_then(Value::as_str).map_or(0, str::len);
        paid(match self {
            Self::Nothing => effort::charge(1),
            Self::Items => effort::charge_all(1 + bytes(0) / TAKEN_APART_BYTES, 1),
            Self::Text => effort::charge_text(bytes(0).saturating_mul(PASSES)),
            Self::Both => effort::charge_text(bytes(0).min(bytes(1))),
            Self::Search => effort::charge_text(bytes(1)),
            Self::Sorted => args.first().is_none_or(pay_for_order),
        })
    }
}

/// Charges for sorting.
fn pay_for_order(items: &Value) -> bool {
    let Ok(walk) = items.try_iter() else { return effort::charge(1) };
    let mut count = 0_usize;
    let mut bytes = 0_usize;
    for item in walk.take(ITEMS_MAX) {
        count += 1;
        bytes = bytes.saturating_add(item.as_str().map_or(0, str::len));
        if effort::is_exceeded() {
            return false;
        }
    }
    let rounds = count.checked_ilog2().map_or(1, |rounds| 1 + rounds as usize);
    effort::charge_all(count, rounds) && effort::charge_text(bytes.saturating_mul(rounds))
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
        paid(effort::charge_text(joiner.len()))?;
        let item = match attribute {
            Some(attribute) => item.get_attr(attribute)?,
            None => item,
        };
        if index > 0 {
            joined.push_str(joiner);
        }
        let text = to_text(&item, bytes_max_of(state))?;
        paid(effort::charge_text(text.len()))?;
        joined.push_str(&text);
        bounded_text(state, Some(joined.len()))?;
    }
    Ok(joined)
}

fn replace(state: &mut State<'_, '_>, value: &Value, from: &str, to: &str) -> Result<Value, Error> {
    let text = value.as_str().unwrap_or_default();
    paid(effort::charge_text(text.len().saturating_mul(PASSES)))?;
    let hits = text.matches(from).count();
    let added = hits.checked_mul(to.len().saturating_sub(from.len()));
    bounded_text(state, added.and_then(|added| text.len().checked_add(added)))?;
    paid(effort::charge_text(hits.saturating_mul(to.len())))?;
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
    paid(effort::charge_text(text.len().saturating_mul(PASSES)))?;
    let added = text.lines().count().checked_mul(width);
    bounded_text(state, added.and_then(|added| text.len().checked_add(added)))?;
    state.apply_filter("engine's indent", &args)
}

fn format(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    let pattern = args.first().and_then(Value::as_str).unwrap_or_default();
    Walks::Text.pay(&args)?;
    let wide = pattern
        .split(|character: char| !character.is_ascii_digit())
        .any(|digits| !digits.is_empty() && digits.parse().map_or(true, |n: usize| n > WIDTH_MAX));
    if wide || pattern.contains('*') {
        return Err(refused(format!("format wider than {WIDTH_MAX}")));
    }
    let formatted = state.apply_filter("engine's format", &args)?;
    let bytes = formatted.as_str().map_or(0, str::len);
    paid(effort::charge_text(bytes))?;
    bounded_text(state, Some(bytes))?;
    Ok(formatted)
}

fn string(state: &mut State<'_, '_>, value: &Value) -> Result<String, Error> {
    let text = to_text(value, bytes_max_of(state))?;
    paid(effort::charge_text(text.len()))?;
    Ok(text)
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

#[cfg(test)]
mod accounts {
    use super::*;

    /// Returns the names in a map of the environment's debug form.
    fn names_of(shown: &str, what: &str) -> Vec<String> {
        let from = shown.find(&format!("{what}: ")).unwrap();
        let list = &shown[from..];
        let end = list.find(['}', ']']).unwrap();
        list[..end].split('"').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// A filter or a test of a newer engine would otherwise run without charge.
    #[test]
    fn every_filter_and_test_of_the_engine_is_wrapped() {
        let shown = format!("{:?}", shared());
        let engines = format!("{:?}", Environment::new());
        for what in ["filters", "tests"] {
            let ours = names_of(&shown, what);
            let theirs = names_of(&engines, what);
            assert!(theirs.len() > 20, "{what}: {theirs:?}");
            for name in theirs.iter().filter(|name| !REMOVED_FILTERS.contains(&name.as_str())) {
                let own = ["join", "string", "tojson"].contains(&name.as_str());
                let original = format!("engine's {name}");
                assert!(own || ours.contains(&original), "{name} of {what} is not wrapped");
            }
            let added = |name: &str| {
                let own = [operators::FILTERS.as_slice(), &parsed::FILTERS, &[members::FILTER]];
                own.concat().contains(&name)
            };
            for name in ours.iter().filter(|name| !added(name)) {
                let known = name.strip_prefix("engine's ").unwrap_or(name);
                assert!(theirs.iter().any(|it| it == known), "{name} is not the engine's");
            }
        }
        let globals: Vec<&str> = shared().globals().map(|(name, _)| name).collect();
        assert_eq!(globals, ["dict", "fail", "range"]);
    }
}
