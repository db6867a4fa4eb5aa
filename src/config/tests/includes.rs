//! Included files and schema files.

use std::fs;

use serde_json::json;

use crate::config::Config;
use crate::config::schema_file::SCHEMA_BYTES_MAX;

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
    let problems: Vec<_> = problems.iter().map(|it| it.to_string().replace(&root, "")).collect();
    assert_eq!(
        problems,
        [
            "c.toml:1:26: include[1]: no file matches \"none/*\"",
            "c.toml:1:36: include[2]: may contain `*` only in the last part",
            "b.workflow:1:1: workflows.a: is already defined in c.toml at line 2",
            "b.workflow:3:2: server: an included file may contain only workflows",
            "c.workflow:2:9: is not UTF-8",
        ]
    );
}

#[test]
fn a_missing_file_is_an_error() {
    let problems = Config::load("no/such.toml").unwrap_err();
    assert_eq!(problems[0].to_string(), "no/such.toml: no such file");
}

/// Loads a workflow whose input schema is in the file `s.json` with these bytes.
fn with_schema(schema: Option<&[u8]>) -> Result<Config, String> {
    let directory = tempfile::tempdir().unwrap();
    let (main, folder) = (directory.path().join("c.toml"), directory.path().join("more"));
    fs::create_dir(&folder).unwrap();
    fs::write(&main, "include = [\"more/*.toml\"]\n").unwrap();
    let workflow = format!("[workflows.w]\ninput_schema = \"s.json\"\n{WORKFLOW}");
    fs::write(folder.join("w.toml"), workflow).unwrap();
    if let Some(schema) = schema {
        fs::write(folder.join("s.json"), schema).unwrap();
    }
    let root = format!("{}/", directory.path().display());
    let lines = |it: Vec<_>| it.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    Config::load(&main).map_err(|problems| lines(problems).replace(&root, ""))
}

#[test]
fn a_schema_may_be_in_a_file() {
    let schema = json!({ "type": "object", "required": ["n"] });
    let config = with_schema(Some(schema.to_string().as_bytes())).unwrap();
    let filed = &config.workflows["w"];
    assert_eq!(filed.definition.input_schema.as_ref(), Some(&schema));
    let written = "input_schema = { type = \"object\", required = [\"n\"] }";
    let text = format!("[workflows.w]\n{written}\n{WORKFLOW}");
    let written = Config::parse(&text, "c.toml").unwrap();
    assert_eq!(filed.hash, written.workflows["w"].hash, "the content counts, not the path");
}

#[test]
fn a_mistake_in_a_schema_file_has_both_places() {
    let large =
        [b"{} ".as_slice(), &vec![b' '; usize::try_from(SCHEMA_BYTES_MAX).unwrap()]].concat();
    let at = "more/w.toml:2:16: workflows.w.input_schema: ";
    for (schema, problems) in [
        (None, "there is no file \"s.json\"; a string here is the path of a JSON Schema"),
        (
            Some(b"{\n  \"type\": object".as_slice()),
            "s.json:2:11: is not valid JSON: expected \
         value",
        ),
        (Some(b"{".as_slice()), "s.json:1:1: is not valid JSON: EOF while parsing an object"),
        (Some(b"[]".as_slice()), "s.json:1:1: a JSON Schema is an object, or true or false"),
        (Some(&large), "the file \"s.json\" is larger than 1048576 bytes"),
    ] {
        assert_eq!(with_schema(schema).unwrap_err(), format!("{at}{problems}"));
    }
    for path in ["/dev/zero", "/"] {
        let text = format!("[workflows.w]\ninput_schema = {path:?}\n{WORKFLOW}");
        let problems = Config::parse(&text, "c.toml").unwrap_err();
        let expected = format!("c.toml:2:16: workflows.w.input_schema: {path:?} is not a file");
        assert_eq!(problems[0].to_string(), expected);
    }
    let bad = with_schema(Some(b"{ \"type\": \"objct\" }")).unwrap_err();
    assert!(bad.starts_with(&format!("{at}s.json: ")), "{bad}");
    let whole = [b"{}".as_slice(), &vec![b' '; usize::try_from(SCHEMA_BYTES_MAX).unwrap() - 2]];
    assert!(with_schema(Some(&whole.concat())).is_ok(), "at the limit");
}
