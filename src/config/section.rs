//! A table being read. Keys that are requested become known; the remaining ones are mistakes.

use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::entry::Entry;
use super::keys::rows;
use super::problem::{ConfigProblem, Spot};
use super::source::{Findings, Source};
use crate::nearest::nearest;

pub(crate) const NOT_SUPPORTED: &str = "not supported by this version";

/// Sections with names that their keys have elsewhere, and the names here.
const SYNONYMS: [(&str, &[&str], &str); 2] = [
    ("agents.*", &["prompt", "system", "system_prompt"], "instructions"),
    ("store", &["path", "file"], "url"),
];

/// The place of a table or value.
#[derive(Debug, Clone)]
pub(crate) struct Place<'a> {
    pub(crate) source: &'a Source,
    pub(crate) findings: &'a Findings,
    pub(crate) span: Range<usize>,
    /// Dotted path of the key, for messages.
    pub(crate) path: String,
    /// The path with `*` in place of names that the author chose, for the list of known keys.
    pub(crate) pattern: String,
}

impl Place<'_> {
    pub(crate) fn spot(&self) -> Spot {
        self.source.spot(&self.span, self.path.clone())
    }

    pub(crate) fn refuse(&self, message: impl Into<String>) {
        self.findings.report(self.spot().error(message));
    }

    pub(crate) fn warn(&self, message: impl Into<String>) {
        self.findings.report(self.spot().warning(message));
    }

    /// Returns the place of a key inside this one.
    pub(crate) fn inner(&self, key: &str, span: Range<usize>) -> Self {
        let key = shown_key(key);
        Self { span, path: joined(&self.path, &key), pattern: joined(&self.pattern, &key), ..*self }
    }

    /// Returns the place of an entry whose name the author chose.
    pub(crate) fn named(&self, name: &str, span: Range<usize>) -> Self {
        let path = joined(&self.path, &shown_key(name));
        Self { span, path, pattern: joined(&self.pattern, "*"), ..*self }
    }

    /// Returns the place of a byte of a text that this is the place of. For the first byte, and in a
    /// text with escapes, that is the whole text.
    pub(crate) fn inside(&self, text: &str, at: usize) -> Self {
        let written = self.source.text.get(self.span.clone()).unwrap_or_default();
        let begin = written.find(text).filter(|_| at > 0).map_or(0, |begin| begin + at);
        Self { span: self.span.start + begin..self.span.end, ..self.clone() }
    }

    /// Returns the place of an item of an array.
    pub(crate) fn item(&self, index: usize, span: Range<usize>) -> Self {
        let path = format!("{}[{index}]", self.path);
        Self { span, path, pattern: self.pattern.clone(), ..*self }
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Returns a key in the form that TOML needs: bare or quoted.
pub(crate) fn shown_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { format!("{key:?}") }
}

/// A table. Requested keys become known; [`Section::close`] refuses the others.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) table: &'a DeTable<'a>,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Section<'a> {
    pub(crate) fn new(place: Place<'a>, table: &'a DeTable<'a>) -> Self {
        Self { place, table, known: RefCell::default() }
    }

    /// Returns the value of a key and marks the key as known.
    pub(crate) fn get(&self, key: &'static str) -> Option<Entry<'a>> {
        self.known.borrow_mut().push(key);
        #[cfg(test)]
        self.place.findings.known_keys.borrow_mut().insert(joined(&self.place.pattern, key));
        let value = self.table.get(key)?;
        Some(Entry::new(self.place.inner(key, value.span()), value.get_ref()))
    }

    /// Returns the value of a key that may be written under its former name. Both at once are an
    /// error.
    pub(crate) fn get_renamed(
        &self,
        key: &'static str,
        former: Option<&'static str>,
    ) -> Option<Entry<'a>> {
        let found = self.get(key);
        let Some(former) = former.filter(|former| self.has(former)) else { return found };
        self.known.borrow_mut().push(former);
        if found.is_some() {
            let message = format!("is the former name of `{key}`; remove one of the two");
            self.key_place(former).refuse(message);
            return found;
        }
        let value = self.table.get(former)?;
        Some(Entry::new(self.place.inner(former, value.span()), value.get_ref()))
    }

    /// Replaces the index of an array item by its id in the path.
    pub(crate) fn rename(&mut self, id: &str) {
        let path = &self.place.path;
        let parent = path.rfind('[').map_or(path.as_str(), |at| &path[..at]);
        self.place.path = joined(parent, &shown_key(id));
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<String> {
        self.get(key)?.text()
    }

    /// Reads a required text.
    pub(crate) fn required_text(&self, key: &'static str) -> Option<String> {
        self.required(key)?.text()
    }

    /// Returns a required value; reports a missing one.
    pub(crate) fn required(&self, key: &'static str) -> Option<Entry<'a>> {
        let found = self.get(key);
        if found.is_none() {
            self.place.refuse(format!("key `{key}` is missing"));
        }
        found
    }

    pub(crate) fn flag(&self, key: &'static str, default: bool) -> bool {
        self.get(key).and_then(|entry| entry.flag()).unwrap_or(default)
    }

    /// Reads a whole number within bounds; returns the default when it is missing or refused.
    pub(crate) fn integer<T>(&self, key: &'static str, bounds: RangeInclusive<i64>, default: T) -> T
    where
        T: TryFrom<i64>,
    {
        let found = self.get(key).and_then(|entry| entry.integer(bounds));
        found.and_then(|number| T::try_from(number).ok()).unwrap_or(default)
    }

    /// Reads a duration of at least a millisecond.
    #[cfg(feature = "providers")]
    pub(crate) fn duration(
        &self,
        key: &'static str,
        default: std::time::Duration,
    ) -> std::time::Duration {
        self.get(key).and_then(|entry| entry.duration()).unwrap_or(default)
    }

    /// Returns the table under a key.
    pub(crate) fn section(&self, key: &'static str) -> Option<Section<'a>> {
        self.get(key)?.section()
    }

    /// Returns the entries of a table whose names the author chose, in the order of the file.
    pub(crate) fn named_entries(&self, key: &'static str) -> Vec<(String, Entry<'a>)> {
        self.section(key).map(|section| section.named()).unwrap_or_default()
    }

    /// Returns the entries of this table under the names that the author chose, in the order of
    /// the file.
    pub(crate) fn named(&self) -> Vec<(String, Entry<'a>)> {
        let named = |(name, _, value): (&'a str, _, &'a Spanned<DeValue<'a>>)| {
            let place = self.place.named(name, value.span());
            (name.to_owned(), Entry::new(place, value.get_ref()))
        };
        in_order(self.table).into_iter().map(named).collect()
    }

    /// Returns the tables in a table whose names the author chose, in the order of the file.
    pub(crate) fn named_sections(&self, key: &'static str) -> Vec<(String, Section<'a>)> {
        let entries = self.named_entries(key).into_iter();
        entries.filter_map(|(name, entry)| Some((name, entry.section()?))).collect()
    }

    /// Returns an array of tables.
    pub(crate) fn sections(&self, key: &'static str) -> Vec<Section<'a>> {
        self.get(key).map(|entry| entry.sections()).unwrap_or_default()
    }

    /// Refuses keys that are planned but not supported yet.
    pub(crate) fn later(&self, keys: &[&'static str]) {
        keys.iter().for_each(|key| self.misplaced(key, NOT_SUPPORTED));
    }

    /// Refuses a key that is often written here by mistake, with a text that helps.
    pub(crate) fn misplaced(&self, key: &'static str, message: &str) {
        if self.has(key) {
            self.key_place(key).refuse(message);
            self.known.borrow_mut().push(key);
        }
    }

    /// Returns the place of a key itself, not of its value.
    pub(crate) fn key_place(&self, key: &str) -> Place<'a> {
        let found = self.table.get_key_value(key);
        let span = found.map_or_else(|| self.place.span.clone(), |(key, _)| key.span());
        self.place.inner(key, span)
    }

    /// Returns the keys that were not requested.
    pub(crate) fn leftovers(&self) -> Vec<&'a str> {
        let known = self.known.borrow();
        let keys = in_order(self.table).into_iter().map(|(key, ..)| key);
        keys.filter(|key| !known.contains(key)).collect()
    }

    /// Returns the refusal of a key that belongs to another section. Definitions and routes are
    /// not compared: equal keys have other meanings there.
    fn in_wrong_section(&self, key: &str, spot: &Spot) -> Option<ConfigProblem> {
        let is_value = !matches!(self.table.get(key)?.get_ref(), DeValue::Table(_));
        let section = self.place.pattern.as_str();
        let has_tables = section.is_empty() || rows().any(|row| row.section == section);
        let homes = rows().filter(|row| has_tables && is_value && row.name == key);
        let homes: Vec<_> = homes.map(|row| format!("[{}]", row.section)).collect();
        let message = format!("belongs in {}", homes.join(" or "));
        (!homes.is_empty()).then(|| spot.error(message))
    }

    /// Returns the refusal of a key that is called so elsewhere, with its name here.
    fn synonym(&self, key: &str, spot: &Spot) -> Option<ConfigProblem> {
        let section = self.place.pattern.as_str();
        let mut known = SYNONYMS.iter().filter(|(of, ..)| *of == section);
        let (_, _, name) = known.find(|(_, others, _)| others.contains(&key))?;
        Some(spot.error("unknown key").meant(Some((*name).to_owned())))
    }

    /// Refuses the keys that were not requested.
    pub(crate) fn close(self) {
        let known = self.known.borrow();
        for key in self.leftovers() {
            let spot = self.key_place(key).spot();
            let problem = misplaced_root_key(key, &spot)
                .or_else(|| self.synonym(key, &spot))
                .or_else(|| self.in_wrong_section(key, &spot))
                .unwrap_or_else(|| {
                    spot.error("unknown key").meant(nearest(key, known.iter().copied()))
                });
            self.place.findings.report(problem);
        }
    }
}

/// Returns the refusal of a root key written below the header of a table, to which TOML assigns it.
pub(crate) fn misplaced_root_key(key: &str, spot: &Spot) -> Option<ConfigProblem> {
    let message = "belongs at the top of the file, before the first table";
    (key == "include" && spot.key != key).then(|| spot.error(message))
}

/// Returns the entries of a table in the order of the file; the parser sorts them by key.
pub(crate) fn in_order<'a>(
    table: &'a DeTable<'a>,
) -> Vec<(&'a str, Range<usize>, &'a Spanned<DeValue<'a>>)> {
    let entry = |(key, value): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
        let name: &std::borrow::Cow<'a, str> = key.get_ref();
        (name.as_ref(), key.span(), value)
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    entries.sort_by_key(|(_, span, _)| span.start);
    entries
}
