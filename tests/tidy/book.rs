//! Rules for the pages as a whole: the table of contents of the book, and `docs/llms.txt`, have each of them.

use std::collections::BTreeSet;

use super::documents::links;
use super::{collect, read};

/// Every page in `docs`, relative to that folder.
fn pages() -> BTreeSet<String> {
    let mut pages = Vec::new();
    collect("docs", "md", &mut pages);
    pages.retain(|page| page != "docs/SUMMARY.md");
    assert!(pages.len() > 80, "the pages have moved");
    pages.iter().map(|page| page.trim_start_matches("docs/").to_owned()).collect()
}

/// Pages that a list names, without the fragments of their links.
///
/// # Panics
///
/// If it names one twice.
fn named(list: &str) -> BTreeSet<String> {
    let text = read(list);
    let mut named = BTreeSet::new();
    for target in links(&text) {
        let page = target.split('#').next().unwrap_or_default();
        assert!(named.insert(page.to_owned()), "{list} names {page} twice");
    }
    named
}

#[test]
fn the_book_has_every_page() {
    assert_eq!(named("docs/SUMMARY.md"), pages(), "docs/SUMMARY.md");
}

#[test]
fn the_list_for_programs_has_every_page() {
    assert_eq!(named("docs/llms.txt"), pages(), "docs/llms.txt");
}

/// A title, a summary, then chapters with lists of links, each with a description: <https://llmstxt.org>.
#[test]
fn the_list_for_programs_has_its_form() {
    let text = read("docs/llms.txt");
    let mut lines = text.lines().filter(|line| !line.is_empty());
    assert!(lines.next().is_some_and(|line| line.starts_with("# ")), "a title");
    assert!(lines.next().is_some_and(|line| line.starts_with("> ")), "a summary");
    let chapters = text.split("\n## ").skip(1);
    for line in chapters.flat_map(|chapter| chapter.lines().skip(1)).filter(|it| !it.is_empty()) {
        let description = line.strip_prefix("- [").and_then(|rest| rest.split_once("): "));
        assert!(description.is_some_and(|(_, it)| !it.is_empty()), "{line}");
    }
}
