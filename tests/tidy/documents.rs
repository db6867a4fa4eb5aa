//! Rules for the documents: links, names of tests, files and metrics, routes, length and words.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use greenroom::api::catalogue::ROUTES;

use super::{collect, none, read};

/// Lines of the README: it is read before anything is installed.
const README_LINES_MAX: usize = 200;

/// Words of `ARCHITECTURE.md`: ten minutes of reading.
const ARCHITECTURE_WORDS_MAX: usize = 2_000;

/// Folders at the top whose files documents name by their whole path.
const FOLDERS: &[&str] =
    &[".ci", "actors", "benches", "crates", "docs", "examples", "src", "tests"];

/// Subjects of the recipes of `CONTRIBUTING.md`, in their order.
const RECIPES: [&str; 11] = [
    "kind of step",
    "command",
    "fact",
    "limit",
    "route",
    "field of an answer",
    "provider",
    "metric",
    "key of an MCP server",
    "feature of Cargo",
    "store",
];

/// Documents that describe the present. The log of changes, the decisions and the open questions
/// keep the words of their time.
fn is_guide(path: &str) -> bool {
    let is_record = path.starts_with("docs/adr/")
        || path.starts_with("docs/open-questions/")
        || ["CHANGELOG.md", "docs/open-questions.md", "docs/races.md", "docs/performance.md"]
            .contains(&path)
        // it has the titles of decisions
        || path == "docs/SUMMARY.md"
        // their tables are made from texts of the code
        || ["docs/configuration.md", "docs/errors.md", "docs/metrics.md"].contains(&path);
    !is_record
}

/// Returns the documents that describe the present.
pub(super) fn guides() -> impl Iterator<Item = String> {
    documents().into_iter().filter(|path| is_guide(path))
}

/// Every document of the repository.
fn documents() -> Vec<String> {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let mut documents = top.map(str::to_owned).to_vec();
    collect("docs", "md", &mut documents);
    assert!(documents.len() > 40, "the documents have moved");
    documents
}

fn exists(path: &str) -> bool {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists()
}

/// The pieces of a text that stand in backticks, blocks of code left out.
fn quoted(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|prose| prose.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn the_table_of_routes_is_that_of_the_catalogue() {
    let page = read("docs/http-api.md");
    let table = page.split("\n## Routes\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = table.expect("a chapter about routes").lines();
    let written: BTreeSet<String> = rows
        .filter_map(|row| row.strip_prefix("| `")?.split_once("` |"))
        .map(|(route, _)| route.to_owned())
        .collect();
    let routes = ROUTES.iter().map(|row| format!("{} {}", row.method.as_str(), row.path));
    let routes: BTreeSet<String> = routes.collect();
    assert_eq!(written, routes, "docs/http-api.md, Routes");
}

/// `file::test` in backticks.
#[test]
fn tests_that_documents_name_exist() {
    let texts: Vec<String> = documents().iter().map(|path| read(path)).collect();
    let quoted = texts.iter().flat_map(|text| text.split('`'));
    let named: BTreeSet<(&str, &str)> = quoted
        .filter_map(|piece| piece.split_once(".rs::"))
        .filter(|(_, test)| test.chars().all(|c| c.is_alphanumeric() || c == '_'))
        .collect();
    assert!(named.len() >= 35, "the documents have changed their form");
    let is_missing = |(file, test): &&(&str, &str)| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{file}.rs"));
        let text = fs::read_to_string(path).unwrap_or_default();
        !text.contains(&format!("fn {test}("))
    };
    let missing = named.iter().filter(is_missing).map(|(file, test)| format!("{file}.rs::{test}"));
    none(missing, "no such test");
}

/// The name that a heading has in a link.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let letters = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    letters.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The targets of the links of a text, blocks of code left out.
pub(super) fn links(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|prose| prose.split("](").skip(1)).filter_map(|rest| rest.split(')').next())
}

/// Returns true if a page has a heading with this anchor.
fn has_anchor(page: &str, wanted: &str) -> bool {
    let mut headings = page.split("```").step_by(2).flat_map(str::lines);
    headings.any(|line| line.starts_with('#') && anchor(line) == wanted)
}

#[test]
fn links_of_documents_are_valid() {
    let mut broken = Vec::new();
    for document in documents().into_iter().chain(["docs/llms.txt".to_owned()]) {
        let text = read(&document);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&document);
        for target in links(&text) {
            if target.starts_with("http") {
                continue;
            }
            let (file, wanted) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => path.clone(),
                file => path.parent().expect("it is in a folder").join(file),
            };
            let is_there = wanted.is_empty()
                || fs::read_to_string(&file).is_ok_and(|page| has_anchor(&page, wanted));
            if !file.exists() || !is_there {
                broken.push(format!("{document}: {target}"));
            }
        }
    }
    none(broken, "broken links");
}

#[test]
fn files_that_guides_name_exist() {
    let mut missing = Vec::new();
    for document in documents().into_iter().filter(|path| is_guide(path)) {
        let text = read(&document);
        for piece in quoted(&text) {
            let top = piece.split_once('/').map(|(top, _)| top);
            let is_path = top.is_some_and(|top| FOLDERS.contains(&top))
                && piece.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c));
            if is_path && !exists(piece) {
                missing.push(format!("{document}: {piece}"));
            }
        }
    }
    none(missing, "no such file");
}

#[test]
fn every_recipe_names_its_files() {
    let text = read("CONTRIBUTING.md");
    let recipes = text.split("\n## Recipes\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let recipes = recipes.expect("a chapter of recipes");
    let recipes = recipes.split("\n### A new ").skip(1);
    let recipes = recipes.map(|recipe| recipe.split_once('\n').expect("a recipe has a text"));
    let recipes: Vec<(&str, &str)> = recipes.collect();
    let subjects: Vec<&str> = recipes.iter().map(|(subject, _)| *subject).collect();
    assert_eq!(subjects, RECIPES);
    for (subject, recipe) in recipes {
        let named = quoted(recipe).into_iter().filter(|piece| piece.contains('/'));
        assert!(named.count() >= 2, "the recipe for a new {subject} names no files");
    }
}

/// The names of metrics in the code are the rows of the page. Types, labels and texts are compared
/// with a running server: `tests/metrics`.
#[test]
fn every_metric_of_the_code_is_on_its_page() {
    let mut files = Vec::new();
    collect("src/telemetry/metrics", "rs", &mut files);
    files.push("src/telemetry/metrics.rs".to_owned());
    let is_name = |piece: &&str| {
        ["greenroom_", "gen_ai_", "http_"].iter().any(|start| piece.starts_with(start))
            && piece.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let texts: Vec<String> =
        files.iter().filter(|path| !path.ends_with("tests.rs")).map(|path| read(path)).collect();
    let names: BTreeSet<&str> =
        texts.iter().flat_map(|text| text.split('"')).filter(is_name).collect();
    assert!(names.len() > 30, "the metrics have moved");
    let page = read("docs/metrics.md");
    let missing = names.into_iter().filter(|name| !page.contains(&format!("| `{name}` |")));
    none(missing.map(str::to_owned), "not in docs/metrics.md");
}

#[test]
fn first_pages_are_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines");
    let words = read("ARCHITECTURE.md").split_whitespace().count();
    assert!(words <= ARCHITECTURE_WORDS_MAX, "ARCHITECTURE.md has {words} words");
}
