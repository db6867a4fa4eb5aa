//! Texts that match a regular expression of the common kind.
//!
//! Best effort: anchors and word boundaries are passed over, look-around and back references
//! are not understood. The validator decides in the end.

use std::iter::Peekable;
use std::str::Chars;

use super::text::CHARS_MAX;

/// Groups inside one another.
const DEPTH_MAX: usize = 32;

/// How far repetitions grow step by step, before they grow by all that is missing.
const GROWTH_MAX: usize = 16;

/// What a negated class may give, in order of taste.
const COMMON: &str = "abcxyz0123456789ABCXYZ_-. ";

/// A part of a pattern.
#[derive(Debug)]
enum Part {
    Character(char),
    OneOf {
        ranges: Vec<(char, char)>,
        negated: bool,
    },
    /// The first alternative stands for all.
    Group(Vec<Part>),
    Repeated {
        part: Box<Part>,
        least: usize,
        most: Option<usize>,
    },
}

/// Makes a text of at least `shortest` characters that the pattern matches, if it can.
pub(super) fn matching(pattern: &str, shortest: usize, variant: usize) -> Option<String> {
    let mut source = pattern.chars().peekable();
    let parts = sequence(&mut source, 0)?;
    if source.next().is_some() {
        return None;
    }
    // open repetitions grow together until the text is long enough
    for extra in (0..=shortest.min(GROWTH_MAX)).chain([shortest]) {
        let mut text = String::new();
        write(&parts, extra, variant, &mut text)?;
        if text.chars().count() >= shortest {
            return Some(text);
        }
    }
    None
}

fn sequence(source: &mut Peekable<Chars<'_>>, depth: usize) -> Option<Vec<Part>> {
    if depth > DEPTH_MAX {
        return None;
    }
    let mut first = None;
    let mut parts = Vec::new();
    while let Some(character) = source.next_if(|c| *c != ')') {
        let part = match character {
            '|' => {
                let alternative = std::mem::take(&mut parts);
                first.get_or_insert(alternative);
                continue;
            }
            '^' | '$' => continue,
            '(' => group(source, depth)?,
            '[' => class(source)?,
            '.' => Part::Character('a'),
            '\\' => match escaped(source)? {
                Some(part) => part,
                None => continue,
            },
            other => Part::Character(other),
        };
        parts.push(repeated(part, source)?);
    }
    Some(first.unwrap_or(parts))
}

fn group(source: &mut Peekable<Chars<'_>>, depth: usize) -> Option<Part> {
    if source.next_if_eq(&'?').is_some() {
        match source.next()? {
            ':' => {}
            'P' | '<' => {
                let name: String = source.by_ref().take_while(|c| *c != '>').collect();
                if name.starts_with(['=', '!']) {
                    return None;
                }
            }
            _ => return None,
        }
    }
    let parts = sequence(source, depth + 1)?;
    source.next_if_eq(&')')?;
    Some(Part::Group(parts))
}

/// A part after a backslash; nothing for what has no width.
fn escaped(source: &mut Peekable<Chars<'_>>) -> Option<Option<Part>> {
    let letter = source.next()?;
    if matches!(letter, 'b' | 'B' | 'A' | 'z') {
        return Some(None);
    }
    if letter.is_ascii_digit() && letter != '0' {
        return None;
    }
    let part = match shorthand(letter, source)? {
        Shorthand::Ranges { ranges, negated } => Part::OneOf { ranges, negated },
        Shorthand::Character(character) => Part::Character(character),
    };
    Some(Some(part))
}

enum Shorthand {
    Ranges { ranges: Vec<(char, char)>, negated: bool },
    Character(char),
}

fn shorthand(letter: char, source: &mut Peekable<Chars<'_>>) -> Option<Shorthand> {
    let ranges = match letter.to_ascii_lowercase() {
        'd' => vec![('0', '9')],
        'w' => vec![('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')],
        's' => vec![(' ', ' '), ('\t', '\t'), ('\n', '\n')],
        'p' => return property(letter == 'P', source),
        _ => {
            let character = match letter {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'x' => coded(source, 2)?,
                'u' => coded(source, 4)?,
                other => other,
            };
            return Some(Shorthand::Character(character));
        }
    };
    Some(Shorthand::Ranges { ranges, negated: letter.is_ascii_uppercase() })
}

/// `\p{L}` and the like: letters and digits are told apart, nothing else.
fn property(negated: bool, source: &mut Peekable<Chars<'_>>) -> Option<Shorthand> {
    source.next_if_eq(&'{')?;
    let name: String = source.by_ref().take_while(|c| *c != '}').collect();
    let ranges = match name.as_str() {
        "Lu" | "Uppercase_Letter" => vec![('A', 'Z')],
        "N" | "Nd" | "Number" => vec![('0', '9')],
        name if name.starts_with('L') => vec![('a', 'z'), ('A', 'Z')],
        _ => return None,
    };
    Some(Shorthand::Ranges { ranges, negated })
}

fn coded(source: &mut Peekable<Chars<'_>>, digits: usize) -> Option<char> {
    let code: String = source.by_ref().take(digits).collect();
    char::from_u32(u32::from_str_radix(&code, 16).ok()?)
}

fn class(source: &mut Peekable<Chars<'_>>) -> Option<Part> {
    let negated = source.next_if_eq(&'^').is_some();
    let mut ranges: Vec<(char, char)> = Vec::new();
    loop {
        let start = match source.next()? {
            ']' => return Some(Part::OneOf { ranges, negated }),
            '\\' => {
                let letter = source.next()?;
                match shorthand(letter, source)? {
                    Shorthand::Ranges { negated: true, .. } => return None,
                    Shorthand::Ranges { ranges: more, .. } => {
                        ranges.extend(more);
                        continue;
                    }
                    Shorthand::Character(character) => character,
                }
            }
            other => other,
        };
        let mut ahead = source.clone();
        let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']');
        if !is_range {
            ranges.push((start, start));
            continue;
        }
        source.next();
        let end = match source.next()? {
            '\\' => source.next()?,
            other => other,
        };
        ranges.push((start, end));
    }
}

fn repeated(part: Part, source: &mut Peekable<Chars<'_>>) -> Option<Part> {
    let (least, most) = match source.peek() {
        Some('*') => (0, None),
        Some('+') => (1, None),
        Some('?') => (0, Some(1)),
        Some('{') => {
            source.next();
            let bounds: String = source.by_ref().take_while(|c| *c != '}').collect();
            source.next_if_eq(&'?');
            let (least, most) = match bounds.split_once(',') {
                None => (bounds.parse().ok()?, Some(bounds.parse().ok()?)),
                Some((least, "")) => (least.parse().ok()?, None),
                Some((least, most)) => (least.parse().ok()?, Some(most.parse().ok()?)),
            };
            return Some(Part::Repeated { part: Box::new(part), least, most });
        }
        _ => return Some(part),
    };
    source.next();
    source.next_if_eq(&'?');
    Some(Part::Repeated { part: Box::new(part), least, most })
}

fn write(parts: &[Part], extra: usize, variant: usize, text: &mut String) -> Option<()> {
    for part in parts {
        if text.len() > CHARS_MAX {
            return None;
        }
        match part {
            Part::Character(character) => text.push(*character),
            Part::OneOf { ranges, negated } => text.push(pick(ranges, *negated, variant)?),
            Part::Group(inner) => write(inner, extra, variant, text)?,
            Part::Repeated { part, least, most } => {
                let times = least.saturating_add(extra).min(most.unwrap_or(usize::MAX)).max(*least);
                for _ in 0..times {
                    let before = text.len();
                    write(std::slice::from_ref(part), extra, variant, text)?;
                    if text.len() == before {
                        // nothing repeated is nothing, however often
                        break;
                    }
                }
            }
        }
    }
    Some(())
}

fn pick(ranges: &[(char, char)], negated: bool, variant: usize) -> Option<char> {
    let within = |c: char| ranges.iter().any(|(start, end)| (*start..=*end).contains(&c));
    if negated {
        let free: Vec<char> = COMMON.chars().filter(|c| !within(*c)).collect();
        return free.get(variant % free.len().max(1)).copied();
    }
    let all = || ranges.iter().flat_map(|(start, end)| *start..=*end);
    let size = all().take(COMMON.len()).count();
    all().nth(variant % size.max(1))
}
