//! Rules of this repository that its text can show; `ARCHITECTURE.md` gives their reasons.
//!
//! A rule looks at code: comments are left out, and so are tests unless it says otherwise.

#[path = "tidy/book.rs"]
mod book;
#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/language.rs"]
mod language;
#[path = "tidy/matches.rs"]
mod matches;
#[path = "tidy/packages.rs"]
mod packages;
#[path = "tidy/paths.rs"]
mod paths;

use std::fs;
use std::path::Path;

/// Longest file. Short ones are read whole.
const LINES_MAX: usize = 450;

/// Files of tests that are longer, and how long they may be. May only shrink.
const LONGER: &[(&str, usize)] = &[];

/// A Rust file.
struct Source {
    /// Relative to the top, with `/`.
    path: String,
    text: String,
}

impl Source {
    fn is_under(&self, places: &[&str]) -> bool {
        places.iter().any(|place| match self.path.strip_prefix(place) {
            Some(rest) => rest.is_empty() || rest.starts_with('/') || rest == ".rs",
            None => false,
        })
    }

    fn is_test(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.any(|part| part == "tests" || part == "tests.rs" || part == "conformance.rs")
    }

    /// Lines of code with their numbers: no comments, nothing from `mod tests {` on.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().take_while(|line| *line != "mod tests {");
        let code = lines.map(|line| line.split("// ").next().unwrap_or(line).trim_end());
        code.enumerate()
            .map(|(index, line)| (index + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Places in the code where a line is `bad`.
    fn places(&self, bad: impl Fn(&str) -> bool) -> Vec<String> {
        self.code()
            .filter(|(_, line)| bad(line))
            .map(|(number, line)| format!("{}:{number}: {}", self.path, line.trim()))
            .collect()
    }
}

/// The identifiers of a line.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn names(line: &str, wanted: &[&str]) -> bool {
    words(line).any(|word| wanted.contains(&word))
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// Every Rust file but this one.
fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for folder in ["src", "tests", "examples", "benches", "actors", "crates"] {
        collect(folder, "rs", &mut found);
    }
    assert!(found.len() > 100, "the sources have moved");
    found.retain(|path| path != "tests/tidy.rs");
    found.into_iter().map(|path| Source { text: read(&path), path }).collect()
}

fn collect(folder: &str, extension: &str, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)) else {
        return;
    };
    for entry in entries {
        let entry = entry.expect(folder);
        let path = format!("{folder}/{}", entry.file_name().display());
        if entry.path().is_dir() {
            collect(&path, extension, found);
        } else if path.ends_with(&format!(".{extension}")) {
            found.push(path);
        }
    }
}

fn none(places: impl IntoIterator<Item = String>, rule: &str) {
    let places: Vec<String> = places.into_iter().collect();
    assert!(places.is_empty(), "{rule}:\n{}", places.join("\n"));
}

/// No code under `under` names one of `words`, except under `except`.
fn is_named_nowhere(under: &[&str], except: &[&str], wanted: &[&str], rule: &str) {
    let sources = sources();
    assert!(sources.iter().any(|source| source.is_under(under)), "nothing is under {under:?}");
    let ruled = sources
        .iter()
        .filter(|source| source.is_under(under) && !source.is_under(except) && !source.is_test());
    none(ruled.flat_map(|source| source.places(|line| names(line, wanted))), rule);
}

const FRAMEWORKS: &[&str] = &["actix", "actix_web", "actix_http", "actix_rt", "actix_web_actors"];

#[test]
fn the_machine_is_pure() {
    let rule = "the domain names no framework, clock or random source";
    let outside = [
        FRAMEWORKS,
        &["tokio", "SystemTime", "Instant", "Utc", "Local", "Uuid", "rand", "getrandom"],
    ];
    is_named_nowhere(&["actors/domain/src"], &[], &outside.concat(), rule);
}

#[test]
fn the_machine_knows_no_actor() {
    let manifest = read("actors/domain/Cargo.toml");
    for name in ["actix", "tokio", "futures", "uuid", "rand", "greenroom-actors"] {
        let brings = manifest.lines().any(|line| line.starts_with(name));
        assert!(!brings, "the domain must not depend on {name}");
    }
}

#[test]
fn the_runtime_knows_no_http() {
    let manifest = read("actors/Cargo.toml");
    for name in ["actix-web", "actix-http", "actix-web-actors", "greenroom ="] {
        assert!(!manifest.contains(name), "actors must not depend on {name}");
    }
    let wanted = ["actix_web", "actix_http", "StatusCode"];
    is_named_nowhere(&["actors/src"], &[], &wanted, "the runtime knows no HTTP");
}

#[test]
fn only_the_front_end_names_the_framework() {
    // `app` builds the server and runs it; `lib` hands the framework on to those who add handlers,
    // and an error tells programs which of its macros they lack
    is_named_nowhere(
        &["src"],
        &["src/web", "src/app", "src/lib", "src/greenroom/error"],
        FRAMEWORKS,
        "only `web` names the framework",
    );
}

#[test]
fn websocket_sessions_stay_in_one_module() {
    let wanted = ["actix_web_actors"];
    is_named_nowhere(&["src"], &["src/web/ws"], &wanted, "only `web/ws` names actix-web-actors");
}

#[test]
fn modules_depend_in_one_direction() {
    let rows: [(&str, &[&str]); 15] = [
        (
            "src/auth",
            &["web", "app", "cli", "greenroom", "config", "builder", "adapters", "maintenance"],
        ),
        (
            "src/maintenance",
            &["web", "api", "app", "auth", "cli", "greenroom", "config", "builder", "adapters"],
        ),
        (
            "src/telemetry",
            &["web", "api", "app", "cli", "greenroom", "config", "builder", "adapters"],
        ),
        ("src/api", &["web", "app", "cli", "greenroom", "config", "builder", "adapters"]),
        ("src/web", &["app", "cli", "greenroom", "config", "builder", "adapters"]),
        ("src/adapters", &["web", "api", "app", "cli", "greenroom", "config", "builder"]),
        ("src/config", &["web", "api", "app", "cli", "greenroom", "builder"]),
        ("src/builder", &["web", "api", "app", "cli", "greenroom", "adapters"]),
        ("src/app", &["cli", "greenroom", "builder"]),
        (
            "actors/src/ports",
            &["agent", "commands", "execution", "registry", "runtime", "shard", "shared"],
        ),
        (
            "actors/src/observe",
            &["commands", "execution", "registry", "runtime", "shard", "shared"],
        ),
        ("actors/src/agent", &["commands", "execution", "runtime", "shared"]),
        ("actors/src/shared", &["execution", "runtime"]),
        ("actors/src/execution", &["runtime"]),
        ("actors/src/shard", &["runtime"]),
    ];
    for (module, hidden) in rows {
        let looks_back = |line: &str| {
            line.split("crate::")
                .skip(1)
                .any(|rest| hidden.contains(&words(rest).next().unwrap_or("")))
        };
        let sources = sources();
        let own = sources.iter().filter(|source| source.is_under(&[module]) && !source.is_test());
        let places = own.flat_map(|source| source.places(looks_back));
        none(places, &format!("{module} must not know {hidden:?}"));
    }
}

#[test]
fn time_and_ids_come_from_the_clock() {
    let wanted = ["SystemTime", "Utc", "Local", "now_v7", "new_v4"];
    let clock = ["actors/src/ports/clock"];
    is_named_nowhere(&["src", "actors/src"], &clock, &wanted, "time and ids come from the clock");
}

#[test]
fn wire_names_are_in_one_place() {
    // Elsewhere a rename is part of what is stored: changing it needs a migration.
    let stored = [
        "actors/domain/src/definition",
        "actors/domain/src/fact",
        "actors/domain/src/failure",
        "actors/domain/src/assignment",
        "actors/domain/src/message",
        "actors/domain/src/state/kept",
        "actors/domain/src/status",
        "actors/domain/src/trace",
        "actors/domain/src/usage",
        "actors/src/agent/ask",
        "actors/src/agent/generation/continuation",
        "actors/src/agent/generation/turn",
        "actors/src/agent/outcome",
        "actors/src/ports/model",
        "actors/src/ports/store",
        "actors/src/runtime/bulk",
    ];
    // A benchmark's bare server speaks for itself.
    let places = [&["src/api/wire", "benches"][..], &stored].concat();
    let sources = sources();
    let ruled = sources.iter().filter(|it| !it.is_under(&places) && !it.is_test());
    let renames = |line: &str| line.contains("serde(") && names(line, &["rename", "rename_all"]);
    none(ruled.flat_map(|source| source.places(renames)), "wire names live in api/wire");
}

#[test]
fn no_mailbox_is_overfilled() {
    is_named_nowhere(&["src", "actors/src"], &["actors/src/mailbox"], &["do_send"], "use try_send");
}

#[test]
fn no_unfinished_code_is_left() {
    let marks = ["todo!", "unimplemented!", "dbg!", "#[ignore", "#![allow", "#[allow"];
    let bad = |line: &str| marks.iter().any(|mark| line.contains(mark));
    let sources = sources();
    none(sources.iter().flat_map(|source| source.places(bad)), "left undone");
}

#[test]
fn every_file_begins_with_a_comment() {
    let sources = sources();
    let silent = sources.iter().filter(|source| !source.text.starts_with("//!"));
    none(silent.map(|source| source.path.clone()), "no `//!` at the top");
}

#[test]
fn files_are_short_and_named_after_their_module() {
    let sources = sources();
    let limit = |source: &Source| {
        let known = LONGER.iter().find(|(path, _)| *path == source.path);
        known.map_or(LINES_MAX, |(_, lines)| *lines)
    };
    let long = sources.iter().filter(|source| source.text.lines().count() > limit(source));
    none(long.map(|source| source.path.clone()), "too long");
    let old = sources.iter().filter(|source| source.path.ends_with("/mod.rs"));
    none(old.map(|source| source.path.clone()), "`foo.rs` beside `foo/`, not `mod.rs`");
}
