//! The JSON Schema of the configuration, against the readers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use greenroom_actors::domain::definition::StepType;
use jsonschema::Validator;
use serde_json::Value;

use super::shipped::everything;
use crate::config::problem::ConfigProblem;
use crate::config::reader::read;
use crate::config::schema;
use crate::config::source::{Findings, Source};
use crate::config::workflows::kind;
use crate::made_page;

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::schema);
static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::validator_for(&SCHEMA).unwrap());

/// Beginnings of refusals that the schema has to share: they are about one key alone.
const SHARED: [&str; 4] =
    ["unknown key", "must be true or false, not", "key `", "must be a string"];

/// Longest text that is compared. Longer ones are parts of the shipped file, which has its own test.
const COMPARED_BYTES_MAX: usize = 10_000;

/// Returns why the schema refuses a text.
fn refusals(text: &str) -> Vec<String> {
    let value: Value = toml::from_str(text).unwrap();
    VALIDATOR
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// Compares the schema with what the readers have found. Every configuration that any test reads
/// gets here: the schema accepts what they accept, and shares refusals that are about one key.
pub(in crate::config) fn compare(source: &Source, problems: &[ConfigProblem]) {
    if source.text.len() > COMPARED_BYTES_MAX {
        return;
    }
    let Ok(value) = toml::from_str::<Value>(&source.text) else { return };
    let errors: Vec<_> = problems.iter().filter(|problem| problem.is_error()).collect();
    let text = &source.text;
    if errors.is_empty() {
        assert!(VALIDATOR.is_valid(&value), "the schema refuses {:?}\n{text}", refusals(text));
    }
    let shared = errors.iter().find(|problem| {
        let is_shared = SHARED.iter().any(|begin| problem.message.starts_with(begin));
        // which providers need a key is in their table
        let is_key = problem.message.contains("`api_key`");
        problem.file == source.file && is_shared && !is_key
    });
    if let Some(problem) = shared {
        assert!(!VALIDATOR.is_valid(&value), "the schema accepts {problem}\n{text}");
    }
}

#[test]
fn the_schema_is_written() {
    made_page::compare("docs/config.schema.json", &schema::text(), "the_schema_is_written");
}

#[test]
fn the_schema_is_valid() {
    jsonschema::meta::validate(&SCHEMA).unwrap();
    let text = schema::text();
    for left in ["\"...\"", "\"kinds\"", "\"description\": \"\"", "definitions/text"] {
        assert!(!text.contains(left), "{left}");
    }
}

/// Collects the dotted paths of all keys, in the form of [`Findings`].
fn keys_of(part: &Value, path: &str, keys: &mut BTreeSet<String>) {
    let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    for (key, value) in part["properties"].as_object().into_iter().flatten() {
        assert!(value["description"].is_string(), "{path}.{key} is not described");
        if value["deprecated"] != true {
            keys.insert(inner(key));
        }
        keys_of(value, &inner(key), keys);
    }
    if let members @ Value::Object(_) = &part["additionalProperties"] {
        keys_of(members, &inner("*"), keys);
    }
    // a text or a table
    for form in part["oneOf"].as_array().into_iter().flatten() {
        keys_of(form, path, keys);
    }
    match part["$ref"].as_str() {
        Some(_) => keys_of(&SCHEMA["definitions"]["step"], "workflows.*.steps", keys),
        // blocks have steps as well
        None if path.ends_with("blocks.*") => {}
        None => {
            if let items @ Value::Object(_) = &part["items"] {
                keys_of(items, path, keys);
            }
        }
    }
}

/// Keys that the shipped file shows at other places: those of steps for compensations of each kind, and
/// those of models and of failures for mocks.
const ELSEWHERE: &str = r#"
compensate = { run = "f", timeout = "1s", retry = { attempts = 2, delay = "1s", factor = 2.0, max_delay = "9s", jitter = true, on = "true", never = "false" } }
[[workflows.rust.steps]]
id = "b"
run = "f"
compensate = { http = { method = "POST", url = "https://a.example", headers = { a = "b" }, query = { a = "1" }, body = "data" } }
[[workflows.rust.steps]]
id = "c"
run = "f"
compensate = { command = { argv = ["true"], input = "data", env = { A = "b" }, cwd = "/", memory_bytes_max = 100000000, output_bytes_max = 1000 } }
[[workflows.rust.steps]]
id = "d"
run = "f"
compensate = { tool = "add", args = { n = "1" } }
[[workflows.rust.steps]]
id = "e"
run = "f"
compensate = { workflow = "refund", input = "data" }
[[workflows.rust.tests]]
name = "t"
mocks.models.offline.rules = [{ tool_call = { name = "add", args = { n = "1" } } }, { tool_calls = [{ name = "add", args = { n = "1" } }] }]
mocks.a = { fail = { message = "no", kind = "declined", terminal = true } }
mocks.tools.add = { fail = { message = "no", kind = "declined", terminal = true } }
mocks.workflows.refund.a = { fail = { message = "no", kind = "declined", terminal = true } }
"#;

#[test]
fn the_keys_of_the_schema_are_those_of_the_readers() {
    // functions in Rust have no line in the file
    let text = everything() + "\n[[workflows.rust.steps]]\nid = \"a\"\nrun = \"f\"\n" + ELSEWHERE;
    let (source, findings) = (Source::new("config.toml", text), Findings::default());
    read(&source, &findings, None);
    let mut keys = BTreeSet::new();
    keys_of(&SCHEMA, "", &mut keys);
    let known = findings.known_keys.into_inner();
    let missing: Vec<_> = known.difference(&keys).collect();
    let unknown: Vec<_> = keys.difference(&known).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing {missing:?}, unknown {unknown:?}");
}

#[test]
fn every_key_of_a_kind_of_step_is_described() {
    for kind in StepType::ALL {
        for key in kind.keys() {
            let described = &SCHEMA["definitions"]["step"]["properties"][key];
            let name = kind.name();
            assert!(
                described.is_object(),
                "{key} of {name} is not in src/config/schema/steps.json"
            );
        }
    }
}

#[test]
fn every_kind_of_step_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for page in ["config.toml", "docs/workflows.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        let missing: Vec<_> = kind::names().filter(|name| !words.contains(name)).collect();
        assert_eq!(missing, [] as [&str; 0], "{page}");
    }
}

#[test]
fn the_schema_accepts_shipped_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("config.toml")];
    for folder in ["docs", "examples", "src", "tests"] {
        files.extend(made_page::files(&root.join(folder), "toml"));
    }
    let read = files.iter().map(|path| (path, std::fs::read_to_string(path).unwrap()));
    let ours: Vec<_> = read.filter(|(_, text)| is_ours(text)).collect();
    assert!(ours.len() > 5, "{ours:?}");
    for (path, text) in ours {
        assert_eq!(refusals(&text), [] as [&str; 0], "{}", path.display());
    }
}

/// Returns the configurations in a page: blocks of TOML, and files that commands write.
fn configurations(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in page.lines() {
        match &mut open {
            Some((end, text)) if line == *end => {
                found.push(std::mem::take(text));
                open = None;
            }
            Some((_, text)) => {
                text.push_str(line);
                text.push('\n');
            }
            None if line == "```toml" => open = Some(("```", String::new())),
            None if line.ends_with(".toml <<'END'") => open = Some(("END", String::new())),
            None => {}
        }
    }
    found
}

#[test]
fn the_schema_accepts_what_the_pages_show() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = made_page::files(&root.join("docs"), "md");
    pages.push(root.join("README.md"));
    let mut seen = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for text in configurations(&text).iter().filter(|text| is_ours(text)) {
            seen += 1;
            let text = text.replace('…', &"0".repeat(64));
            // a page may show a part of a table
            let refusals =
                refusals(&text).into_iter().filter(|it| !it.contains("required property"));
            assert_eq!(
                refusals.collect::<Vec<_>>(),
                [] as [&str; 0],
                "{}:\n{text}",
                page.display()
            );
        }
    }
    assert!(seen > 15, "{seen}");
}

/// Returns true if a text has a section of the configuration.
fn is_ours(text: &str) -> bool {
    let mut headers = text.lines().filter_map(|line| line.strip_prefix('['));
    headers.any(|header| {
        let name = header.trim_start_matches('[').split(['.', ']']).next().unwrap_or_default();
        SCHEMA["properties"].get(name).is_some()
    })
}

#[test]
fn faulty_files_are_refused_by_the_schema_and_the_readers() {
    let step = |lines: &str| format!("[[workflows.w.steps]]\nid = \"a\"\n{lines}\n");
    let tool = |lines: &str| format!("[tools.t]\ndescription = \"d\"\n{lines}\n");
    let model = |lines: &str| format!("[models.m]\n{lines}\n");
    for text in [
        "[sevrer]\nport = 1\n".to_owned(),
        "[server]\nport = \"3141\"\n".to_owned(),
        "[server]\nport = 70000\n".to_owned(),
        "[server]\nhots = \"::1\"\n".to_owned(),
        "[server]\nkeep_alive = 5\n".to_owned(),
        "[server]\nkeep_alive = \"5 parsecs\"\n".to_owned(),
        "[store]\ndurability = \"fast\"\n".to_owned(),
        "[store]\npassword = \"hidden\"\n".to_owned(),
        "[logs]\nlevel = \"loud\"\n".to_owned(),
        "[telemetry]\nsample_ratio = 2\n".to_owned(),
        "[auth]\nprovider = \"jwt\"\n".to_owned(),
        "[auth.jwt]\nsecret = \"hidden\"\n".to_owned(),
        "[auth.jwt]\nalgorithms = [\"none\"]\n".to_owned(),
        "[[auth.api_keys]]\nid = \"k\"\nhash = \"plain\"\n".to_owned(),
        "[agents.a]\nname = \"A\"\n".to_owned(),
        "[agents.\"a b\"]\nmodel = \"m\"\n".to_owned(),
        model("provider = \"opnai\""),
        model("provider = \"mock\"\nmodel = \"x\""),
        model("provider = \"openai\"\nmodel = \"x\"\napi_key = \"sk-1\""),
        model("provider = \"openai\"\nmodel = \"x\"\npace = \"1s\""),
        tool("kind = \"mcp\""),
        tool("kind = \"workflow\"\nworkflow = \"w\"\nurl = \"http://a\""),
        tool("kind = \"http\"\nurl = \"http://a\""),
        tool(
            "kind = \"http\"\nurl = \"http://a\"\nparameters = { type = \"object\" }\nmethod = \"PATCHY\"",
        ),
        step("mpa = 1"),
        step("map = 1\nrun = \"f\""),
        step("map = 1\nargs = {}"),
        step("type = \"andThne\"\nmap = 1"),
        step("type = \"andSleep\"\nduration = 3"),
        step("type = \"andSleep\"\nduration = \"3s\"\nretry = {}"),
        step("type = \"andTap\"\nmap = 1\nsuspend = { deadline = \"1h\" }"),
        step("map = 1\nsuspend = { dedline = \"1h\" }"),
        step("map = 1\non_error = \"ingore\""),
        "[workflows.w]\nsteps = []\n".to_owned(),
        "[[routes]]\npath = \"/a\"\n".to_owned(),
        "[[routes]]\npath = \"/a\"\nagent = \"a\"\nanswer = \"result\"\n".to_owned(),
        "[[routes]]\npath = \"/a\"\nagent = \"a\"\nbody = \"input\"\n".to_owned(),
    ] {
        let problems = super::problems_of(&text);
        assert!(
            problems.iter().any(|line| !line.contains("warning:")),
            "the readers accept\n{text}"
        );
        assert!(!refusals(&text).is_empty(), "the schema accepts\n{text}");
    }
}
