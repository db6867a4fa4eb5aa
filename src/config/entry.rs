//! A value being read: it has the right type, or a problem is reported.

use std::ops::RangeInclusive;
use std::time::Duration;

use greenroom_actors::domain::definition::Mapping;
use serde_json::{Map, Number, Value};
use toml::de::{DeArray, DeInteger, DeValue};
use url::Url;

use super::names::{NameKind, Reference};
use super::problem::ConfigProblem;
use super::schema_file;
use super::secret::names_secret;
use super::section::{Place, Section, in_order};
use crate::nearest::nearest;

/// Longest duration, ten years: longer ones are mistakes, and sums with the current time stay far
/// from overflow.
pub(crate) const DURATION_MAX: Duration = Duration::from_secs(3650 * 24 * 3600);

/// A value with its place. Conversions report a refused value and return `None`.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) value: &'a DeValue<'a>,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(place: Place<'a>, value: &'a DeValue<'a>) -> Self {
        Self { place, value }
    }

    /// Reports an error and returns `None`.
    pub(crate) fn refuse<T>(&self, message: impl Into<String>) -> Option<T> {
        self.place.refuse(message);
        None
    }

    /// Reports a name that is not one of the known ones, with the nearest of them.
    pub(crate) fn refuse_name(&self, name: &str, known: &[&str]) {
        self.place.findings.report(self.misnamed(name, known));
    }

    /// Returns the error of a name that is not one of the known ones.
    pub(crate) fn misnamed(&self, name: &str, known: &[&str]) -> ConfigProblem {
        let problem = self.place.spot().error(format!("must be one of {}", known.join(", ")));
        problem.meant(nearest(name, known.iter().copied()))
    }

    /// Reads one of these names and returns its value.
    pub(crate) fn one_of<T: Copy>(&self, names: &[(&str, T)]) -> Option<T> {
        let written = self.text()?;
        let found = names.iter().find(|(name, _)| *name == written);
        if found.is_none() {
            self.refuse_name(&written, &names.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        }
        found.map(|(_, value)| *value)
    }

    /// Reads the name of a definition, to be looked up when all names are known.
    pub(crate) fn reference(
        &self,
        kind: NameKind,
        references: &mut Vec<Reference>,
    ) -> Option<String> {
        let name = self.filled_text()?;
        references.push(Reference::new(kind, &name, self.place.spot()));
        Some(name)
    }

    /// Reads an address over HTTP without credentials.
    pub(crate) fn web_address(&self) -> Option<Url> {
        let text = self.filled_text()?;
        web_address(&text).map_err(|problem| self.place.refuse(problem)).ok()
    }

    /// Reads a text in which secrets may be named.
    pub(crate) fn text_with_secrets(&self, expected: &str) -> Option<String> {
        let DeValue::String(text) = self.value else {
            return self.refuse(format!("must be {expected}"));
        };
        Some(text.clone().into_owned())
    }

    /// Refuses a value of another type.
    pub(crate) fn mismatch<T>(&self, expected: &str) -> Option<T> {
        self.refuse(format!("must be {expected}, not {}", with_article(self.value.type_str())))
    }

    pub(crate) fn text(&self) -> Option<String> {
        let DeValue::String(text) = self.value else { return self.mismatch("a string") };
        match names_secret(text) {
            Some(written) => {
                self.refuse(format!("`{written}` is allowed in keys and headers only"))
            }
            None => Some(text.clone().into_owned()),
        }
    }

    /// Reads a text that is not empty.
    pub(crate) fn filled_text(&self) -> Option<String> {
        let text = self.text()?;
        if text.is_empty() { self.refuse("must not be empty") } else { Some(text) }
    }

    /// Reads an expression: a text, or a boolean.
    pub(crate) fn expression(&self) -> Option<String> {
        match self.value {
            DeValue::Boolean(flag) => Some(flag.to_string()),
            DeValue::String(_) => self.filled_text(),
            _ => self.mismatch("an expression in a string"),
        }
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        let DeValue::Boolean(flag) = self.value else { return self.mismatch("true or false") };
        Some(*flag)
    }

    pub(crate) fn integer(&self, bounds: RangeInclusive<i64>) -> Option<i64> {
        let DeValue::Integer(written) = self.value else { return self.mismatch("a whole number") };
        match integer_of(written) {
            Some(number) if bounds.contains(&number) => Some(number),
            _ if *bounds.end() == i64::MAX => {
                self.refuse(format!("must be at least {}", bounds.start()))
            }
            _ => self.refuse(format!("must be from {} to {}", bounds.start(), bounds.end())),
        }
    }

    pub(crate) fn number(&self, bounds: RangeInclusive<f64>) -> Option<f64> {
        let number = match self.value {
            DeValue::Integer(written) => integer_of(written).map(|number| number as f64),
            DeValue::Float(written) => written.as_str().parse().ok(),
            _ => return self.mismatch("a number"),
        };
        match number {
            Some(number) if bounds.contains(&number) => Some(number),
            _ => self.refuse(format!("must be from {} to {}", bounds.start(), bounds.end())),
        }
    }

    /// Reads a duration of at least a millisecond.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let duration = self.pause()?;
        match duration_problem(duration) {
            Some(problem) => self.refuse(problem),
            None => Some(duration),
        }
    }

    /// Reads a duration that may be zero.
    pub(crate) fn pause(&self) -> Option<Duration> {
        const EXPECTED: &str = "a duration such as \"500ms\", \"3s\" or \"48h\"";
        let DeValue::String(text) = self.value else { return self.mismatch(EXPECTED) };
        let Ok(duration) = humantime::parse_duration(text) else {
            return self.refuse(format!("must be {EXPECTED}"));
        };
        match pause_problem(duration) {
            Some(problem) => self.refuse(problem),
            None => Some(duration),
        }
    }

    /// Reads a duration of at least a millisecond, in milliseconds.
    pub(crate) fn milliseconds(&self) -> Option<u64> {
        self.duration().map(milliseconds)
    }

    /// Reads a table. An array of tables is refused with the header to write.
    pub(crate) fn section(&self) -> Option<Section<'a>> {
        let path = self.place.path.as_str();
        match self.value {
            DeValue::Table(table) => Some(Section::new(self.place.clone(), table)),
            DeValue::Array(items) if is_of_tables(items) && !path.contains('[') => {
                self.refuse(format!("must be a table, not an array: write [{path}]"))
            }
            _ => self.mismatch("a table"),
        }
    }

    /// Reads a table. Another value is refused with the table to write.
    pub(crate) fn section_as(&self, example: &str) -> Option<Section<'a>> {
        let DeValue::Table(table) = self.value else {
            return self.mismatch(&format!("a table, {example}"));
        };
        Some(Section::new(self.place.clone(), table))
    }

    pub(crate) fn items(&self) -> Option<Vec<Entry<'a>>> {
        let DeValue::Array(items) = self.value else { return self.mismatch("an array") };
        let entry = |(index, item): (usize, &'a toml::Spanned<DeValue<'a>>)| {
            Entry::new(self.place.item(index, item.span()), item.get_ref())
        };
        Some(items.iter().enumerate().map(entry).collect())
    }

    pub(crate) fn texts(&self) -> Option<Vec<String>> {
        let items = self.items()?;
        let texts: Vec<_> = items.iter().map(Entry::text).collect();
        texts.into_iter().collect()
    }

    /// Reads an array of tables. One table alone is refused with the header to write.
    pub(crate) fn tables(&self) -> Option<Vec<Entry<'a>>> {
        let path = self.place.path.as_str();
        match self.value {
            // a header cannot name an item of an array
            DeValue::Table(_) if !path.contains('[') => {
                self.refuse(format!("must be an array, not a table: write [[{path}]]"))
            }
            _ => self.items(),
        }
    }

    pub(crate) fn sections(&self) -> Vec<Section<'a>> {
        let items = self.tables().unwrap_or_default();
        items.iter().filter_map(Entry::section).collect()
    }

    pub(crate) fn mapping(&self) -> Option<Mapping> {
        self.json().map(Mapping)
    }

    /// Reads a JSON Schema or, from a string, the file with one. An inline schema is checked when
    /// it is compiled.
    pub(crate) fn schema(&self) -> Option<Value> {
        match self.value {
            DeValue::Table(_) | DeValue::Boolean(_) => self.json(),
            DeValue::String(_) => schema_file::read(self),
            _ => self.mismatch("a JSON Schema"),
        }
    }

    /// Returns the value as JSON, keys in the order of the file.
    pub(crate) fn json(&self) -> Option<Value> {
        match self.value {
            DeValue::String(_) => self.text().map(Value::String),
            DeValue::Boolean(flag) => Some(Value::Bool(*flag)),
            DeValue::Integer(written) => match integer_of(written) {
                Some(number) => Some(Value::from(number)),
                None => self.refuse("is too large a number"),
            },
            DeValue::Float(written) => {
                match written.as_str().parse().ok().and_then(Number::from_f64) {
                    Some(number) => Some(Value::Number(number)),
                    None => self.refuse("is not a number that JSON can represent"),
                }
            }
            DeValue::Datetime(_) => self.refuse("is a date; write it as a string"),
            DeValue::Array(_) => {
                let items: Vec<_> = self.items()?.iter().map(Entry::json).collect();
                items.into_iter().collect::<Option<Vec<_>>>().map(Value::Array)
            }
            DeValue::Table(table) => {
                let member = |(key, _, value): (&'a str, _, &'a toml::Spanned<DeValue<'a>>)| {
                    let entry = Entry::new(self.place.inner(key, value.span()), value.get_ref());
                    (key.to_owned(), entry.json())
                };
                let members: Vec<_> = in_order(table).into_iter().map(member).collect();
                let members = members.into_iter().map(|(key, value)| Some((key, value?)));
                members.collect::<Option<Map<_, _>>>().map(Value::Object)
            }
        }
    }
}

/// Returns true for what `[[key]]` writes, at least one table.
fn is_of_tables(items: &DeArray<'_>) -> bool {
    !items.is_empty() && items.iter().all(|item| matches!(item.get_ref(), DeValue::Table(_)))
}

/// Returns the problem of a duration that may be zero.
fn pause_problem(duration: Duration) -> Option<&'static str> {
    if duration > DURATION_MAX {
        return Some("must be at most 3650 days");
    }
    let is_whole = duration.subsec_nanos().is_multiple_of(1_000_000);
    (!is_whole).then_some("must be whole milliseconds")
}

/// Returns the problem of a duration of at least a millisecond.
pub(crate) fn duration_problem(duration: Duration) -> Option<&'static str> {
    if duration.is_zero() { Some("must be longer than 0ms") } else { pause_problem(duration) }
}

/// Parses an address over HTTP without credentials. Errors do not repeat the text, which may
/// contain a secret.
pub(crate) fn web_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a valid address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("must begin with http:// or https://".to_owned());
    }
    if url.password().is_some() || !url.username().is_empty() {
        return Err("must not contain a user name or a password".to_owned());
    }
    Ok(url)
}

/// Returns the refusal of a key beside another one of which only one is allowed.
pub(crate) fn only_one_of(other: &str) -> String {
    format!("cannot be combined with `{other}`; remove one of them")
}

/// Returns the milliseconds of a duration up to [`DURATION_MAX`].
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn integer_of(written: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(written.as_str(), written.radix()).ok()
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {kind}")
}
