//! Tables of the sections with plain values: a row for each key with its kind, bounds, default and
//! description. Reading, defaults, `docs/configuration.md` and the JSON Schema are derived from them.

use std::ops::RangeInclusive;
use std::time::Duration;

use greenroom_actors::{RetentionRules, RuntimeLimits};
#[cfg(feature = "cli")]
use serde_json::Value as JsonValue;
use toml::de::DeValue;

use super::entry::Entry;
use super::features::Feature;
use super::section::Section;
use super::variables::text_with_variables;
use super::{
    ClusterConfig, ConsoleConfig, CorsConfig, DocsConfig, InboxConfig, LimitsConfig, LogsConfig,
    MetricsConfig, ServerConfig, StoreConfig, SystemConfig, TelemetryConfig, UpdatesConfig,
};

/// Value in place of a duration: no end.
pub(crate) const FOREVER: &str = "forever";

/// The kind of value that a key takes, with its bounds.
#[derive(Debug)]
#[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "there is no schema"))]
pub(crate) enum Takes {
    /// A whole number.
    Integer(RangeInclusive<i64>),
    /// A whole number of bytes.
    Bytes(RangeInclusive<i64>),
    /// A duration of at least a millisecond.
    Duration,
    /// A duration that may be zero.
    DurationOrZero,
    /// A duration of at least a millisecond, or [`FOREVER`].
    DurationOrForever,
    /// `true` or `false`.
    Flag,
    /// The same; `true` needs the feature, without which the program cannot do that.
    FlagOf(Feature, &'static str),
    /// A number from 0 to 1.
    Share,
    /// A non-empty text.
    Text,
    /// A non-empty text in which environment variables may be named.
    TextWithVariables,
    /// An array of texts with this reader; the text describes it.
    Texts(fn(&Entry<'_>) -> Option<Vec<String>>, &'static str),
    /// One of these words, which the type of the field reads.
    OneOf(&'static [&'static str]),
    /// The name of an environment variable with a secret.
    Secret,
    /// A text that the type of the field reads; the words describe it.
    Own(&'static str),
    /// An array of texts that the type of the field reads; the words describe it.
    OwnTexts(&'static str),
    /// A table of texts.
    TableOfTexts,
    /// No value in the file; the text is the refusal and names the place to set it.
    Elsewhere(&'static str),
}

impl Takes {
    fn bounds(&self) -> RangeInclusive<i64> {
        if let Self::Integer(bounds) | Self::Bytes(bounds) = self {
            bounds.clone()
        } else {
            0..=i64::MAX
        }
    }
}

/// A type of field that a key can set.
pub(crate) trait Value: Sized {
    /// Reads a value, or reports its refusal and returns `None`.
    fn read(entry: &Entry<'_>, takes: &Takes) -> Option<Self>;

    /// Returns the value in the form of the file; `None` if there is none, or its type has no form.
    #[cfg(feature = "cli")]
    fn written(&self) -> Option<JsonValue> {
        None
    }
}

/// A field of any [`Value`] type.
pub(crate) trait Field {
    /// Sets the field unless the value is refused.
    fn set(&mut self, entry: &Entry<'_>, takes: &Takes);

    /// Returns the value in the form of the file.
    #[cfg(feature = "cli")]
    fn written(&self) -> Option<JsonValue>;
}

impl<V: Value> Field for V {
    fn set(&mut self, entry: &Entry<'_>, takes: &Takes) {
        if let Some(value) = V::read(entry, takes) {
            *self = value;
        }
    }

    #[cfg(feature = "cli")]
    fn written(&self) -> Option<JsonValue> {
        Value::written(self)
    }
}

/// A row of a table.
#[derive(Debug)]
pub(crate) struct Key<T> {
    pub(crate) name: &'static str,
    /// Name in earlier versions, which is still accepted.
    pub(crate) former: Option<&'static str>,
    pub(crate) takes: Takes,
    /// Lines of the description.
    pub(crate) about: &'static [&'static str],
    pub(crate) field: fn(&mut T) -> &mut dyn Field,
}

/// A section, or a part of one, that is read with a table. Its defaults are those of the type.
pub(crate) trait Keys: Default + 'static {
    const KEYS: &'static [Key<Self>];

    /// Reads the keys in the file; the others keep their defaults.
    fn read_keys(section: &Section<'_>) -> Self {
        let mut read = Self::default();
        for key in Self::KEYS {
            if let Takes::Elsewhere(message) = key.takes {
                section.misplaced(key.name, message);
            } else if let Some(entry) = section.get_renamed(key.name, key.former) {
                (key.field)(&mut read).set(&entry, &key.takes);
            }
        }
        read
    }

    /// Reads a section whose keys are all in the table.
    fn read(section: Section<'_>) -> Self {
        let read = Self::read_keys(&section);
        section.close();
        read
    }
}

/// A row without the type of its section.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "there is no schema"))]
pub(crate) struct Row {
    pub(crate) section: &'static str,
    pub(crate) name: &'static str,
    pub(crate) former: Option<&'static str>,
    pub(crate) takes: &'static Takes,
    pub(crate) about: &'static [&'static str],
}

impl Row {
    /// Returns the description on one line.
    #[cfg(feature = "cli")]
    pub(crate) fn about(&self) -> String {
        self.about.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    }
}

fn rows_of<T: Keys>(section: &'static str) -> impl Iterator<Item = Row> {
    T::KEYS.iter().map(move |Key { name, former, takes, about, .. }| Row {
        section,
        name,
        former: *former,
        takes,
        about,
    })
}

/// Returns the rows of a table, each with its default.
#[cfg(feature = "cli")]
pub(crate) fn rows_with_defaults<T: Keys>() -> impl Iterator<Item = (Row, Option<JsonValue>)> {
    let mut defaults = T::default();
    let defaults: Vec<_> = T::KEYS.iter().map(|key| (key.field)(&mut defaults).written()).collect();
    rows_of::<T>("").zip(defaults)
}

/// Returns the rows of the sections that are tables, section by section.
pub(crate) fn rows() -> impl Iterator<Item = Row> {
    let rows = rows_of::<ServerConfig>("server")
        .chain(rows_of::<StoreConfig>("store"))
        .chain(rows_of::<ClusterConfig>("cluster"))
        .chain(rows_of::<RetentionRules>("retention"))
        .chain(rows_of::<CorsConfig>("cors"))
        .chain(rows_of::<ConsoleConfig>("console"))
        .chain(rows_of::<DocsConfig>("docs"))
        .chain(rows_of::<InboxConfig>("inbox"))
        .chain(rows_of::<LogsConfig>("logs"))
        .chain(rows_of::<MetricsConfig>("metrics"))
        .chain(rows_of::<SystemConfig>("system"))
        .chain(rows_of::<UpdatesConfig>("updates"))
        .chain(rows_of::<TelemetryConfig>("telemetry"))
        .chain(rows_of::<RuntimeLimits>("limits"))
        .chain(rows_of::<LimitsConfig>("limits"));
    rows.filter(|row| !matches!(row.takes, Takes::Elsewhere(_)))
}

/// Declares a section: its type, its defaults and its table. A row is a description, a field with
/// its type and default, and the kind of value, as in `port: u16 = 3141, Takes::Integer(0..=65_535);`.
/// Fields after `and` are not keys. With `impl`, declares the table of an existing type: a row is a
/// description, a key with the path of its field, and the kind of value.
macro_rules! section {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $about:literal])+
            $key:ident: $type:ty = $default:expr, $takes:expr $(, formerly $former:literal)?;)+
        }
        $(and { $($(#[$inner_meta:meta])+ $inner:ident: $inner_type:ty;)+ })?
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[doc = $about])+ pub $key: $type,)+
            $($($(#[$inner_meta])+ pub $inner: $inner_type,)+)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($key: $default,)+
                    $($($inner: <$inner_type>::default(),)+)?
                }
            }
        }

        $crate::config::keys::section! {
            impl $name {
                $($(#[doc = $about])+ $key: $key, $takes $(, formerly $former)?;)+
            }
        }
    };
    (
        impl $name:ident {
            $($(#[doc = $about:literal])+
            $key:ident: $($field:ident).+, $takes:expr $(, formerly $former:literal)?;)+
        }
    ) => {
        impl $crate::config::keys::Keys for $name {
            const KEYS: &'static [$crate::config::keys::Key<Self>] = &[
                $($crate::config::keys::Key {
                    name: stringify!($key),
                    former: $crate::config::keys::section!(@former $($former)?),
                    takes: $takes,
                    about: &[$($about),+],
                    field: |section| &mut section.$($field).+,
                },)+
            ];
        }
    };
    (@former) => { None };
    (@former $former:literal) => { Some($former) };
}
pub(super) use section;

macro_rules! whole_numbers {
    ($($type:ty),+) => {$(
        impl Value for $type {
            fn read(entry: &Entry<'_>, takes: &Takes) -> Option<Self> {
                Self::try_from(entry.integer(takes.bounds())?).ok()
            }

            #[cfg(feature = "cli")]
            fn written(&self) -> Option<JsonValue> {
                Some((*self).into())
            }
        }
    )+};
}
whole_numbers!(u16, u32, u64, usize);

impl Value for Duration {
    fn read(entry: &Entry<'_>, takes: &Takes) -> Option<Self> {
        if matches!(takes, Takes::DurationOrZero) { entry.pause() } else { entry.duration() }
    }

    #[cfg(feature = "cli")]
    fn written(&self) -> Option<JsonValue> {
        let text = humantime::format_duration(*self).to_string();
        Some(text.replace("days", "d").into())
    }
}

impl Value for bool {
    fn read(entry: &Entry<'_>, takes: &Takes) -> Option<Self> {
        let flag = entry.flag()?;
        if let Takes::FlagOf(feature, what) = takes
            && let Some(refusal) = feature.lacking(what).filter(|_| flag)
        {
            return entry.refuse(refusal);
        }
        Some(flag)
    }
}

impl Value for f64 {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        entry.number(0.0..=1.0)
    }
}

impl Value for String {
    fn read(entry: &Entry<'_>, takes: &Takes) -> Option<Self> {
        let has_variables = matches!(takes, Takes::TextWithVariables);
        if has_variables { text_with_variables(entry) } else { entry.filled_text() }
    }
}

impl Value for Vec<String> {
    fn read(entry: &Entry<'_>, takes: &Takes) -> Option<Self> {
        if let Takes::Texts(read, _) = takes { read(entry) } else { entry.texts() }
    }
}

/// A key without a default, or one that accepts `"forever"`.
impl<V: Value> Value for Option<V> {
    fn read(entry: &Entry<'_>, takes: &Takes) -> Option<Self> {
        if matches!(takes, Takes::DurationOrForever) {
            const EXPECTED: &str = "a duration such as \"30d\", or \"forever\"";
            let DeValue::String(text) = entry.value else { return entry.mismatch(EXPECTED) };
            if text == FOREVER {
                return Some(None);
            }
            if !text.starts_with(|c: char| c.is_ascii_digit()) {
                return entry.refuse(format!("must be {EXPECTED}"));
            }
        }
        V::read(entry, takes).map(Some)
    }

    #[cfg(feature = "cli")]
    fn written(&self) -> Option<JsonValue> {
        self.as_ref().and_then(V::written)
    }
}
