//! A value being read: it has the right type, or its refusal is reported.

use std::ops::RangeInclusive;
use std::time::Duration;

use greenroom_actors::domain::definition::Projection;
use serde_json::{Map, Number, Value};
use toml::de::{DeInteger, DeValue};

use super::schema_file;
use super::secret::names_secret;
use super::section::{Place, Section, in_order};

/// Longest duration, ten years: what is longer was meant otherwise, and sums with the current
/// time stay far from overflow.
pub(crate) const DURATION_MAX: Duration = Duration::from_secs(3650 * 24 * 3600);

/// A value with its place. Every conversion reports what it refuses and then gives `None`.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) value: &'a DeValue<'a>,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(place: Place<'a>, value: &'a DeValue<'a>) -> Self {
        Self { place, value }
    }

    fn refuse<T>(&self, message: impl Into<String>) -> Option<T> {
        self.place.refuse(message);
        None
    }

    fn mismatch<T>(&self, expected: &str) -> Option<T> {
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

    /// Refuses an empty text, too.
    pub(crate) fn filled_text(&self) -> Option<String> {
        let text = self.text()?;
        if text.is_empty() { self.refuse("must not be empty") } else { Some(text) }
    }

    /// An expression; a boolean stands for itself.
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

    /// A duration of at least a millisecond.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let duration = self.pause()?;
        if duration.is_zero() { self.refuse("must be longer than 0ms") } else { Some(duration) }
    }

    /// A duration that may be zero.
    pub(crate) fn pause(&self) -> Option<Duration> {
        const EXPECTED: &str = "a duration such as \"500ms\", \"3s\" or \"48h\"";
        let DeValue::String(text) = self.value else { return self.mismatch(EXPECTED) };
        let Ok(duration) = humantime::parse_duration(text) else {
            return self.refuse(format!("must be {EXPECTED}"));
        };
        if duration > DURATION_MAX {
            return self.refuse("must be at most 3650 days");
        }
        if duration.subsec_nanos() % 1_000_000 != 0 {
            return self.refuse("must be whole milliseconds");
        }
        Some(duration)
    }

    /// A duration of at least a millisecond, as definitions keep it.
    pub(crate) fn milliseconds(&self) -> Option<u64> {
        self.duration().map(milliseconds)
    }

    pub(crate) fn section(&self) -> Option<Section<'a>> {
        let DeValue::Table(table) = self.value else { return self.mismatch("a table") };
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

    pub(crate) fn sections(&self) -> Vec<Section<'a>> {
        let items = self.items().unwrap_or_default();
        items.iter().filter_map(Entry::section).collect()
    }

    pub(crate) fn projection(&self) -> Option<Projection> {
        self.json().map(Projection)
    }

    /// A JSON Schema, or the path of a file with one, which no schema could be; whether one that
    /// is written here is good is seen when it is compiled.
    pub(crate) fn schema(&self) -> Option<Value> {
        match self.value {
            DeValue::Table(_) | DeValue::Boolean(_) => self.json(),
            DeValue::String(_) => schema_file::read(self),
            _ => self.mismatch("a JSON Schema"),
        }
    }

    /// The value as JSON, keys in the order of the file.
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
                    None => self.refuse("is a number that JSON does not have"),
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

/// Milliseconds of a duration that is within [`DURATION_MAX`].
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
