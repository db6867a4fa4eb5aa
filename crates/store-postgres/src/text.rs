//! Texts in columns.
//!
//! PostgreSQL's `text` cannot contain U+0000. It is written as U+001A `0`, and U+001A itself as
//! U+001A `1`, which keeps the order of all other texts and every text distinct.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

const ESCAPE: char = '\u{1a}';

/// A text of a column, escaped when written and unescaped when read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Text<S>(pub(crate) S);

/// Escapes a text.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        match char {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, '1']),
            char => escaped.push(char),
        }
    }
    Cow::Owned(escaped)
}

/// Reverses [`escaped`].
pub(crate) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains(ESCAPE) {
        return Cow::Borrowed(text);
    }
    let mut original = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            ESCAPE if chars.next() == Some('0') => original.push('\0'),
            char => original.push(char),
        }
    }
    Cow::Owned(original)
}

impl<S: AsRef<str> + std::fmt::Debug> ToSql for Text<S> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        (&*escaped(self.0.as_ref())).to_sql(kind, out)
    }

    accepts!(TEXT, VARCHAR);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Text<String> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(unescaped(<&str>::from_sql(kind, raw)?).into_owned()))
    }

    accepts!(TEXT, VARCHAR);
}

impl<'a> FromSql<'a> for Text<Arc<str>> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Arc::from(unescaped(<&str>::from_sql(kind, raw)?))))
    }

    accepts!(TEXT, VARCHAR);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_and_contain_no_null_character() {
        for text in ["", "a", "\0", "\u{1a}", "\u{1a}0", "a\0\u{1a}1\0b", "äöü \u{1a}\u{1a}\0\0"]
        {
            let written = escaped(text);
            assert!(!written.contains('\0'), "{text:?}");
            assert_eq!(unescaped(&written), text);
        }
        assert!(matches!(escaped("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn different_texts_stay_different() {
        assert_ne!(escaped("\0"), escaped("\u{1a}0"));
    }
}
