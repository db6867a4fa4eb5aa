//! The OpenAPI document against an independent validator, and the running server against its
//! document: schemathesis calls every operation with valid and invalid data and checks each answer.
//! Both are Python programs, listed in `tests/openapi/requirements.txt`; `.ci/run` installs them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::program::{Programs as _, exits_within};
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use serde_json::json;
use support::server::{Home, Server};

const CONFIG: &str = include_str!("../openapi/server.toml");
const SECRET: &str = "only-for-this-test-0123456789abcdef";
/// Time limit of a program on a busy machine.
const RUN_MAX: Duration = Duration::from_secs(15 * 60);
/// Random cases per operation, beside the edge cases of its schema.
const EXAMPLES: &str = "25";
/// Fixed, so that a failure is reproducible.
const SEED: &str = "1";

#[test]
fn the_document_is_valid_and_the_server_conforms_to_it() {
    let Some(python) = python() else {
        let missing = "Python with tests/openapi/requirements.txt is missing: python3 -m venv \
                       target/python && target/python/bin/pip install -r \
                       tests/openapi/requirements.txt";
        support::not_tested("the OpenAPI document", missing);
        return;
    };
    let home = Home::new(CONFIG);
    std::fs::create_dir(home.path("files")).unwrap();
    home.write("files/hello.txt", "hello\n");
    let mut program = home.greenroom(&["--log", "warn,greenroom::app=info"]);
    program.env("JWT_SECRET", SECRET);
    let server = Server::start(program);
    let bearer = bearer();
    let token = [("authorization", bearer.as_str())];

    let document = server.send("GET", "/doc", &token, None);
    assert_eq!(document.status, 200);
    home.write("openapi.json", &document.text());
    let mut validator = Command::new(python.join("python"));
    validator.args(["-m", "openapi_spec_validator", "--schema", "3.1", "openapi.json"]);
    succeeds(&home, validator);

    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi");
    let ended = json!({ "input": { "n": 1 }, "options": { "executionId": "ended" } });
    let ended = ended.to_string();
    let path = "/workflows/noop3/execute";
    assert_eq!(server.send("POST", path, &token, Some(ended.as_bytes())).status, 200);
    let mut tester = Command::new(python.join("st"));
    tester
        .env("SCHEMATHESIS_HOOKS", own.join("explained.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg("--config-file")
        .arg(own.join("schemathesis.toml"))
        .args(["run", &format!("http://{}/doc", server.address), "--checks", "all"])
        // it ends with the server
        .args(["--exclude-path", "/inbox/stream"])
        .args(["--phases", "examples,coverage,fuzzing,stateful", "--continue-on-failure"])
        // written as in the document: otherwise schemathesis does not remove it for its checks
        .args(["--header", &format!("Authorization: {bearer}")])
        .args(["--max-examples", EXAMPLES, "--seed", SEED, "--workers", "1"])
        .args(["--request-timeout", "30", "--generation-database", "none", "--no-color"]);
    succeeds(&home, tester);
}

fn bearer() -> String {
    let claims = json!({
        "sub": "ann",
        "roles": ["admin"],
        "exp": get_current_timestamp() + 3600,
    });
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    format!("Bearer {}", encode(&Header::default(), &claims, &key).unwrap())
}

/// Runs a program, which must exit by itself.
fn succeeds(home: &Home, mut program: Command) {
    let said = home.path("said");
    let out = File::create(&said).unwrap();
    program.current_dir(home.path("")).stderr(out.try_clone().unwrap()).stdout(out);
    let mut child = program.spawn().unwrap();
    let ends = exits_within(&mut child, RUN_MAX);
    if !ends {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    let said = String::from_utf8_lossy(&std::fs::read(said).unwrap()).into_owned();
    assert!(ends, "still runs after {RUN_MAX:?}\n{said}");
    assert!(status.success(), "{status}\n{said}");
}

/// Returns the folder of the programs: that of `.ci/run`, or one of the machine.
pub(crate) fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(own).chain(std::env::split_paths(&path));
    let has_both = |folder: &PathBuf| {
        let finds = Command::new(folder.join("python"))
            .args(["-c", "import openapi_spec_validator, schemathesis"])
            .output();
        finds.is_ok_and(|output| output.status.success())
    };
    folders.filter(|folder| folder.join("st").is_file()).find(has_both)
}
