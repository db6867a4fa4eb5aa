//! Files beside the main one.

use std::fs;

use crate::config::Config;

const WORKFLOW: &str = "steps = [{ id = \"a\", map = 1 }]\n";

#[test]
fn included_files_hold_workflows() {
    let directory = tempfile::tempdir().unwrap();
    let main = directory.path().join("c.toml");
    let folder = directory.path().join("workflows");
    fs::create_dir(&folder).unwrap();
    fs::write(&main, "include = [\"workflows/*.toml\", \"workflows/b.toml\"]\n").unwrap();
    fs::write(folder.join("a.toml"), format!("[workflows.a]\n{WORKFLOW}")).unwrap();
    fs::write(folder.join("b.toml"), format!("[workflows.b]\n{WORKFLOW}")).unwrap();
    fs::write(folder.join("notes.txt"), "not TOML").unwrap();
    let config = Config::load(&main).unwrap();
    assert_eq!(config.workflows.keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn an_included_file_has_its_own_problems() {
    let directory = tempfile::tempdir().unwrap();
    let main = directory.path().join("c.toml");
    let text =
        format!("include = [\"*.workflow\", \"none/*\", \"*/x\"]\n[workflows.a]\n{WORKFLOW}");
    fs::write(&main, text).unwrap();
    let other = directory.path().join("b.workflow");
    fs::write(&other, format!("[workflows.a]\n{WORKFLOW}[server]\nport = 1\n")).unwrap();
    fs::write(directory.path().join("c.workflow"), b"[workflows.c]\nname = \"\xff\"").unwrap();
    let problems = Config::load(&main).unwrap_err();
    let root = format!("{}/", directory.path().display());
    let said: Vec<_> = problems.iter().map(|it| it.to_string().replace(&root, "")).collect();
    assert_eq!(
        said,
        [
            "c.toml:1:26: include[1]: no file matches \"none/*\"",
            "c.toml:1:36: include[2]: may have a `*` in its last part only",
            "b.workflow:1:1: workflows.a: is defined in c.toml at line 2 already",
            "b.workflow:3:2: server: an included file may hold workflows only",
            "c.workflow:2:9: is not UTF-8",
        ]
    );
}

#[test]
fn a_missing_file_is_said_to_be_missing() {
    let problems = Config::load("no/such.toml").unwrap_err();
    assert_eq!(problems[0].to_string(), "no/such.toml: no such file");
}
