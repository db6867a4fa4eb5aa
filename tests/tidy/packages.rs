//! Rules for the packages of the crates: files that a build reads are in them, and they need few others.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use super::{read, sources};

/// Resolves `..` of a path in the repository.
fn resolved(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn the_package_of_the_server_has_what_its_build_reads() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let included = manifest["package"]["include"].as_array().unwrap();
    let included: Vec<_> = included.iter().map(|it| it.as_str().unwrap()).collect();
    assert!(included.contains(&"/console/dist") && included.contains(&"/build.rs"));
    let mut seen = 0;
    for source in sources().iter().filter(|it| it.is_under(&["src"]) && !it.is_test()) {
        let mut rest = source.text.split("mod tests {").next().unwrap_or_default();
        while let Some((_, after)) = rest.split_once("include_") {
            rest = after;
            let Some((_, name)) = after.split_once("!(\"").filter(|(kind, _)| kind.len() < 8)
            else {
                continue;
            };
            let name = name.split('"').next().unwrap_or_default();
            let file = resolved(&Path::new(&source.path).parent().unwrap().join(name));
            assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file).is_file(), "{file:?}");
            let is_in = |place: &&str| file.starts_with(place.trim_start_matches('/'));
            assert!(included.iter().any(is_in), "{}: {file:?} is not in the package", source.path);
            seen += 1;
        }
    }
    assert!(seen > 8, "the files have moved");
}

#[test]
fn crates_of_the_workspace_are_named_with_their_versions() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let version = &manifest["workspace"]["package"]["version"];
    let named = [&manifest["workspace"]["dependencies"], &manifest["dependencies"]];
    let named = named.into_iter().flat_map(|it| it.as_table().unwrap());
    for (name, dependency) in named.filter(|(_, it)| it.get("path").is_some()) {
        assert_eq!(dependency.get("version"), Some(version), "{name}");
    }
}

/// Returns the blocks of code of a language in a document.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("\n```") {
        let Some((block, further)) = after.split_once("\n```\n") else { break };
        let (named, code) = block.split_once('\n').unwrap_or_default();
        if named.split(',').next() == Some(language) {
            blocks.push(code);
        }
        rest = further;
    }
    blocks
}

/// A newcomer copies the dependencies, then the programs.
#[test]
fn the_page_names_the_crates_that_its_programs_use() {
    let page = read("docs/library.md");
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let version = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert!(page.contains(&format!("needs Rust {version} or newer")), "{version}");
    let given = blocks(&page, "toml").into_iter().flat_map(|block| {
        let table: toml::Table = block.parse().unwrap();
        table["dependencies"].as_table().unwrap().keys().cloned().collect::<Vec<_>>()
    });
    let given: BTreeSet<_> = given.map(|name| name.replace('-', "_")).collect();
    let programs = blocks(&page, "rust");
    assert!(programs.len() > 10, "{}", programs.len());
    for program in programs {
        let is_mark = |c: char| c.is_whitespace() || "(#[&<".contains(c);
        for (name, _) in program.split(is_mark).filter_map(|path| path.split_once("::")) {
            let is_module = ["", "std", "self"].contains(&name)
                || program.contains(&format!("::{name};"))
                || program.contains(&format!("::{name}::{{self"));
            if !is_module && name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                assert!(given.contains(name), "docs/library.md: {name} is in no [dependencies]");
            }
        }
    }
}

/// Returns the number of packages that a build for Linux needs, tests apart.
fn weight(options: &[&str]) -> usize {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ended = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none"])
        .args(["--target", "x86_64-unknown-linux-gnu", "--format", "{p}"])
        .args(options)
        .output()
        .expect("cargo runs this test");
    let packages = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let named = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    packages.lines().filter(|line| !line.is_empty()).map(named).collect::<BTreeSet<_>>().len()
}

#[test]
fn the_runtime_with_a_store_stays_light() {
    let packages = weight(&["--package", "greenroom-store-sqlite"]);
    assert!(packages < 160, "{packages} packages");
}

#[test]
fn the_page_has_the_weight_of_each_feature() {
    let page = read("docs/library.md");
    let bare = ["--package", "greenroom", "--no-default-features"];
    let with = |features: &str| weight(&[&bare[..], &["--features", features]].concat());
    let none = weight(&bare);
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let features = manifest["features"]["default"].as_array().unwrap();
    for feature in features.iter().map(|it| it.as_str().unwrap()) {
        let row = format!("| `{feature}` | {} packages |", with(feature) - none);
        assert!(page.contains(&row), "docs/library.md needs: {row}");
    }
    let client = with("http-client") - none;
    let (sqlite, all) = (with("sqlite"), weight(&bare[..2]));
    let runtime = weight(&["--package", "greenroom-store-sqlite"]);
    for says in [
        format!("which has {none} packages"),
        format!("share the HTTP client, {client} packages"),
        format!("With `sqlite` alone it is {sqlite}, with all {all}"),
        format!("have {runtime} packages together"),
    ] {
        assert!(page.contains(&says), "docs/library.md needs: {says}");
    }
}
