//! Texts of a server on a terminal: without control characters, which could move the cursor, change
//! what is shown already, or send keys.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

/// Returns a text in one line, with escapes in place of control characters.
pub(in crate::cli) fn plain(text: &str) -> String {
    escaped(text, |_| false)
}

/// Returns a text with its lines and tabs, and escapes in place of other control characters.
pub(super) fn plain_lines(text: &str) -> String {
    escaped(&text.replace("\r\n", "\n"), |c| c == '\n' || c == '\t')
}

/// Adds options to the commands of a client in an advice, behind `greenroom`: they call the server
/// that this one has called.
pub(super) fn addressed<'a>(advice: &'a str, options: &str) -> Cow<'a, str> {
    const COMMANDS: [&str; 6] = ["workflows", "executions", "inbox", "agents", "tools", "traces"];
    if options.is_empty() {
        return Cow::Borrowed(advice);
    }
    COMMANDS.into_iter().fold(Cow::Borrowed(advice), |advice, command| {
        let bare = format!("greenroom {command} ");
        if advice.contains(&bare) {
            Cow::Owned(advice.replace(&bare, &format!("greenroom{options} {command} ")))
        } else {
            advice
        }
    })
}

/// Returns the begin of a text, and how much of it is left out.
pub(super) fn shortened(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let left = text[end..].chars().count();
            Cow::Owned(format!("{}… ({left} more characters)", &text[..end]))
        }
    }
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) && !is_kept(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Returns true for control characters, and for those that are not seen or that change the
/// direction of text. Joiners stay: some scripts and emoji are written with them.
fn is_harmful(c: char) -> bool {
    let is_unseen = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || is_unseen
}

/// Returns JSON in several lines.
pub(in crate::cli) fn pretty(value: &Value) -> String {
    json_plain(&format!("{value:#}"))
}

/// Returns JSON in one line.
pub(in crate::cli) fn compact(value: &Value) -> String {
    json_plain(&value.to_string())
}

/// Escapes the control characters that JSON itself does not escape. They are only in its texts.
fn json_plain(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for c in json.chars() {
        if is_harmful(c) && c != '\n' {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // writes to a string cannot fail
                let _ = write!(plain, "\\u{unit:04x}");
            }
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Returns a text member of an object; an empty text if there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the items of a list member; none if there is none.
pub(super) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Returns a value as the cell of a table.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => plain(text),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => compact(value),
    }
}

/// Returns a duration in milliseconds for people.
pub(super) fn duration(ms: u64) -> String {
    let (s, m, h) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{s}.{} s", ms % 1_000 / 100),
        60_000..3_600_000 => format!("{m} min {} s", s % 60),
        _ => format!("{h} h {} min", m % 60),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, expected) in [
            ("Käse 漢字 🙂", "Käse 漢字 🙂"),
            ("\u{1b}]0;owned\u{7}", "\\u{1b}]0;owned\\u{7}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\r\nb\tc\u{7f}", "a\\r\\nb\\tc\\u{7f}"),
            ("\u{202e}cod.exe", "\\u{202e}cod.exe"),
            ("a\u{200b}b\u{feff}\u{e0041}", "a\\u{200b}b\\u{feff}\\u{e0041}"),
            ("👩\u{200d}💻", "👩\u{200d}💻"),
        ] {
            assert_eq!(plain(text), expected);
        }
        assert_eq!(plain_lines("a\r\nb\tc\rd\u{1b}"), "a\nb\tc\\rd\\u{1b}");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = json!({ "a": "\u{9b}31m\u{7f}\u{1b}\u{202e}\nü" });
        for written in [compact(&value), pretty(&value)] {
            assert!(!written.contains(['\u{9b}', '\u{7f}', '\u{1b}', '\u{202e}']), "{written}");
            assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        }
    }

    #[test]
    fn durations_are_for_people() {
        for (ms, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_234, "1.2 s"),
            (61_000, "1 min 1 s"),
            (7_260_000, "2 h 1 min"),
        ] {
            assert_eq!(duration(ms), expected);
        }
    }
}
