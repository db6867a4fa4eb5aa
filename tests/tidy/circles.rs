//! Rule for circles of files across folders: there are none, so that the code can be read from its leaves on.
//!
//! A file uses another one if a path in it begins with the module of that: `crate::a::b::C` and
//! `super::b::C` lead to `a/b.rs`, which is the longest part of the path that is a file. A module may
//! use those above it, for they are read together, and files of one folder may use each other. A name
//! that a module above passes on counts as its own, so a circle through it is not seen. Tests are left
//! out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::paths::{Paths, paths_of};
use super::{Source, none, sources};

/// Path of a module from the root of its crate.
type Module<'s> = Vec<&'s str>;

/// Files that each file uses, with a path that says so.
type Uses<'m, 's> = BTreeMap<&'m Module<'s>, BTreeMap<Module<'s>, String>>;

/// Files of a crate, by module.
struct Crate<'s> {
    /// Folder of the root, with `/` at the end.
    folder: &'s str,
    files: BTreeMap<Module<'s>, Paths<'s>>,
}

impl<'s> Crate<'s> {
    /// Reads the modules below a root.
    fn read(root: &'s str, sources: &BTreeMap<&'s str, &'s str>) -> Self {
        let folder = root.strip_suffix("lib.rs").unwrap_or_default();
        let mut files = BTreeMap::new();
        let mut unread: Vec<Module<'s>> = vec![Vec::new()];
        while let Some(module) = unread.pop() {
            let path = if module.is_empty() { root.to_owned() } else { path(folder, &module) };
            // a module with another path, which tests have
            let Some(text) = sources.get(&*path) else { continue };
            let paths = paths_of(text);
            unread.extend(paths.children.iter().map(|child| [&module[..], &[*child]].concat()));
            files.insert(module, paths);
        }
        Self { folder, files }
    }

    /// Returns the longest part of a path that is a file.
    fn file_of(&self, path: &[&'s str]) -> Module<'s> {
        let mut parts = (0..=path.len()).rev().map(|length| path[..length].to_vec());
        parts.find(|part| self.files.contains_key(part)).unwrap_or_default()
    }

    /// Returns the files that each file uses, without itself and those above it.
    fn uses(&self) -> Uses<'_, 's> {
        let uses = |(module, paths): (&Module<'s>, &Paths<'s>)| {
            let absolute = paths.absolute(module).into_iter();
            let files = absolute.map(|(path, written)| (self.file_of(&path), written));
            files.filter(|(file, _)| !module.starts_with(file)).collect()
        };
        self.files.iter().map(|file| (file.0, uses(file))).collect()
    }

    /// Returns the circles across folders, each with its files and the paths that lead on: for each
    /// use of a file in another folder the shortest way back.
    fn circles(&self) -> Vec<String> {
        let uses = self.uses();
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for (module, used) in &uses {
            for used in used.keys().filter(|used| folder_of(used) != folder_of(module)) {
                let Some(circle) = way(&uses, used, module) else { continue };
                let mut files = circle.clone();
                files.sort_unstable();
                if seen.insert(files) {
                    circles.push(self.shown(&circle, &uses));
                }
            }
        }
        circles
    }

    fn shown(&self, circle: &[Module<'s>], uses: &Uses<'_, 's>) -> String {
        let following = circle.iter().cycle().skip(1);
        let lines = circle.iter().zip(following).map(|(module, next)| {
            let [from, to] = [module, next].map(|module| path(self.folder, module));
            format!("\n    {from} -> {to} ({})", uses[module][next])
        });
        format!("circle of {} files:{}", circle.len(), lines.collect::<String>())
    }
}

fn path(folder: &str, module: &[&str]) -> String {
    format!("{folder}{}.rs", if module.is_empty() { "lib".to_owned() } else { module.join("/") })
}

/// Returns the modules above a file: those of one folder have the same.
fn folder_of<'m, 's>(module: &'m Module<'s>) -> &'m [&'s str] {
    &module[..module.len().saturating_sub(1)]
}

/// Returns the shortest way from one file to another, both included.
fn way<'s>(uses: &Uses<'_, 's>, from: &Module<'s>, to: &Module<'s>) -> Option<Vec<Module<'s>>> {
    let mut before: BTreeMap<&Module<'s>, Option<&Module<'s>>> = BTreeMap::from([(from, None)]);
    let mut next = VecDeque::from([from]);
    while let Some(file) = next.pop_front() {
        if file == to {
            let steps = std::iter::successors(Some(file), |file| before[*file]);
            let mut way: Vec<_> = steps.cloned().collect();
            way.reverse();
            return Some(way);
        }
        for used in uses[file].keys() {
            before.entry(used).or_insert_with(|| {
                next.push_back(used);
                Some(file)
            });
        }
    }
    None
}

/// Returns the circles across folders of all crates in the sources.
fn circles_in(sources: &[Source]) -> Vec<String> {
    let texts = sources.iter().map(|source| (&*source.path, &*source.text)).collect();
    let roots = sources.iter().filter(|source| source.path.ends_with("src/lib.rs"));
    roots.flat_map(|root| Crate::read(&root.path, &texts).circles()).collect()
}

#[test]
fn no_circle_of_files_crosses_folders() {
    let sources = sources();
    let read = sources.iter().filter(|source| source.path.ends_with("src/lib.rs")).count();
    assert!(read > 6, "the crates have moved");
    let rule =
        "files of several folders use each other; move what both need into a file of its own";
    none(circles_in(&sources), rule);
}

/// Sources of a crate below a root with the modules `a` and `b`, and what is found in them.
struct Row {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    expected: &'static [&'static str],
}

const fn row(
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    expected: &'static [&'static str],
) -> Row {
    Row { name, files, expected }
}

const ROWS: [Row; 8] = [
    row("none", &[("a", "use crate::b::B;"), ("b", "")], &[]),
    row("one folder", &[("a", "use crate::b::B;"), ("b", "use super::a::A;")], &[]),
    row(
        "parents",
        &[("a", "mod x; use x::X;"), ("a/x", "use super::A; use crate::a::{A, self};"), ("b", "")],
        &[],
    ),
    row(
        "through a child",
        &[
            ("a", "mod x; fn f() { x::f() }"),
            ("a/x", "use crate::b::B;"),
            ("b", "use crate::a::A;"),
        ],
        &["src/a.rs -> src/a/x.rs (x::f)", "src/a/x.rs -> src/b.rs (crate::b::B)"],
    ),
    row(
        "lists, inline modules and paths in code",
        &[
            ("a", "pub(crate) mod x;"),
            ("a/x", "mod own { use super::super::super::{b::{self, y::{Y as Z, W}}}; }"),
            ("b", "pub mod y;"),
            ("b/y", "fn f() -> u8 { 'r'; \"quoted\"; crate::a::x::f::<u8>() }"),
        ],
        &["src/a/x.rs -> src/b/y.rs (super::super::super::b::y::", "(crate::a::x::f)"],
    ),
    row(
        "a use of a leaf is no use of its siblings",
        &[
            ("a", "pub mod x; pub mod leaf; pub use leaf::A;"),
            ("a/x", "use crate::b::B;"),
            ("a/leaf", ""),
            ("b", "use crate::a::leaf::A;"),
        ],
        &[],
    ),
    row(
        "tests, comments and texts",
        &[
            ("a", "mod x; #[cfg(test)] mod tests { use crate::b::B; }"),
            ("a/x", "use crate::b::B;"),
            (
                "b",
                "// use crate::a::x::X;\n const T: &str = r#\"\" crate::a::x::X\"#; #[cfg(test)] mod tests;",
            ),
            ("b/tests", "use crate::a::x::X;"),
        ],
        &[],
    ),
    row(
        "lifetimes",
        &[
            ("a", "mod x;"),
            ("a/x", "fn f(x: &'static str, y: &'a crate::b::B) {}"),
            ("b", "use crate::a::x::X;"),
        ],
        &["src/a/x.rs -> src/b.rs (crate::b::B)"],
    ),
];

#[test]
fn circles_across_folders_are_found() {
    for Row { name, files, expected } in ROWS {
        let source =
            |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let files = files.iter().map(|(module, text)| source(&format!("src/{module}.rs"), text));
        let root = [source("src/lib.rs", "mod a; mod b;")].into_iter();
        let found = circles_in(&root.chain(files).collect::<Vec<_>>()).join("\n");
        assert_eq!(found.is_empty(), expected.is_empty(), "{name}: {found}");
        for expected in expected {
            assert!(found.contains(expected), "{name}: {found}");
        }
    }
}
