//! Rules for the language of comments, texts and guides; `CONTRIBUTING.md` has the glossary.

use super::documents::guides;
use super::{collect, none, read, sources};

/// Constructs that readers have to decode, and plain words to use in their place.
const AVOIDED: &[(&str, &str)] = &[
    ("whoever", "the caller, the client, anyone who"),
    ("whom", "name the subject"),
    ("nobody", "no caller, no subscriber"),
    ("somebody", "a caller, a subscriber, a person"),
    ("everybody", "every caller, every subscriber"),
    ("told", "receives, is notified, reports"),
    ("tells", "reports, returns, shows"),
    ("heard", "received"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("at work", "running"),
    ("of its own", "its own, separate"),
    ("makes no sense", "corrupt, invalid"),
    ("any more", "no longer"),
    ("kept state", "snapshot"),
    ("kept states", "snapshots"),
    ("cut off", "interrupted"),
    ("is none of", "is not among, is not"),
    ("are none of", "are not among, are not"),
    ("is mended", "is fixed, is corrected"),
    ("gives away", "hands over"),
    ("what is true now", "the current state"),
    ("those who look", "name the reader"),
];

/// Configurations whose comments users read before anything else.
const CONFIGURATIONS: &[&str] = &["config.toml", "src/cli/init/config.toml"];

/// Words that begin a relative clause. A doc comment begins with a verb or with a noun.
const OPENERS: &[&str] = &[
    "What", "Whether", "Why", "Who", "Whom", "Whose", "Whoever", "Where", "How", "When", "Which",
    "Those",
];

/// Files of the console that are made from the document of the API, whose texts they have.
const GENERATED: &[&str] = &["console/src/api/schema.ts"];

/// Returns the avoided constructs of a text.
fn avoided(text: &str) -> impl Iterator<Item = String> {
    let plain: String = text
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() || c == '\'' { c } else { ' ' })
        .collect();
    let plain = format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "));
    AVOIDED
        .iter()
        .filter(move |(avoided, _)| plain.contains(&format!(" {avoided} ")))
        .map(|(avoided, instead)| format!("{avoided} ({instead})"))
}

/// Returns a text without what stands in backticks: names, answers, quotations.
fn unquoted(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// A run of comment lines.
struct Comment {
    /// Number of its first line.
    line: usize,
    is_doc: bool,
    text: String,
}

/// Returns the comments of a text, whose lines begin with a mark.
fn comments(text: &str, mark: &str) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix(mark) else {
            is_open = false;
            continue;
        };
        let text = rest.trim_start_matches(['/', '!']);
        match comments.last_mut().filter(|_| is_open) {
            Some(comment) => comment.text.extend([" ", text]),
            None => {
                let is_doc = rest.starts_with(['/', '!']);
                comments.push(Comment { line: index + 1, is_doc, text: text.to_owned() });
            }
        }
        is_open = true;
    }
    comments
}

/// Returns the doc comments of a text in TypeScript, `/** … */`, with the line in which each begins.
fn blocks(text: &str) -> Vec<Comment> {
    let following = text.lines().skip(1).chain([""]);
    let lines = text.lines().zip(following).enumerate();
    lines
        .filter_map(|(index, (line, next))| {
            let rest = line.trim().strip_prefix("/**")?;
            let text = if rest.is_empty() { next.trim().trim_start_matches('*') } else { rest };
            Some(Comment { line: index + 1, is_doc: true, text: text.to_owned() })
        })
        .collect()
}

/// Returns the doc comments that begin with a relative clause, with their places.
fn relative(path: &str, comments: &[Comment]) -> Vec<String> {
    comments
        .iter()
        .filter(|comment| {
            let first = comment.text.split_whitespace().next().unwrap_or_default();
            comment.is_doc && OPENERS.contains(&first)
        })
        .map(|comment| format!("{path}:{}: {}", comment.line, comment.text.trim()))
        .collect()
}

/// Returns the texts between quotation marks in a line of code that have more than one word.
fn texts(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2).filter(|text| text.trim().contains(' '))
}

#[test]
fn guides_speak_plain_english() {
    let mut found = Vec::new();
    for document in guides() {
        // answers of the program are in blocks
        let prose = read(&document).split("```").step_by(2).collect::<Vec<_>>().join(" ");
        found.extend(avoided(&unquoted(&prose)).map(|it| format!("{document}: {it}")));
    }
    none(found, "see the glossary of CONTRIBUTING.md");
}

#[test]
fn comments_speak_plain_english() {
    let mut found = Vec::new();
    for source in sources() {
        for Comment { line, text, .. } in comments(&source.text, "//") {
            found.extend(
                avoided(&unquoted(&text)).map(|it| format!("{}:{line}: {it}", source.path)),
            );
        }
    }
    none(found, "see the glossary of CONTRIBUTING.md");
}

#[test]
fn texts_speak_plain_english() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        for (number, line) in source.code() {
            let words = texts(line).flat_map(avoided);
            found.extend(words.map(|it| format!("{}:{number}: {it}", source.path)));
        }
    }
    none(found, "users read these texts: see the glossary of CONTRIBUTING.md");
}

#[test]
fn configurations_speak_plain_english() {
    let mut found = Vec::new();
    for path in CONFIGURATIONS {
        for Comment { line, text, .. } in comments(&read(path), "#") {
            found.extend(avoided(&unquoted(&text)).map(|it| format!("{path}:{line}: {it}")));
        }
    }
    let mut schemas = Vec::new();
    collect("src/config/schema", "json", &mut schemas);
    assert!(schemas.len() > 5, "the descriptions of keys have moved");
    for path in schemas {
        for (index, line) in read(&path).lines().enumerate() {
            let words = texts(line).flat_map(avoided);
            found.extend(words.map(|it| format!("{path}:{}: {it}", index + 1)));
        }
    }
    none(found, "users read these texts: see the glossary of CONTRIBUTING.md");
}

#[test]
fn doc_comments_begin_with_a_verb_or_a_noun() {
    let mut found = Vec::new();
    for source in sources() {
        found.extend(relative(&source.path, &comments(&source.text, "//")));
    }
    let mut pages = Vec::new();
    for extension in ["ts", "tsx"] {
        collect("console/src", extension, &mut pages);
    }
    assert!(pages.len() > 100, "the sources of the console have moved");
    for path in pages.iter().filter(|path| !GENERATED.contains(&path.as_str())) {
        found.extend(relative(path, &blocks(&read(path))));
    }
    none(found, "say what it does (Returns, Starts) or what it is (Maximum, Number of)");
}
