//! The OpenAPI document against an independent validator, and the running server against its
//! document: schemathesis asks every operation, with right and with wrong data, and compares each
//! answer with what is promised. Both are Python programs; `tests/openapi/requirements.txt` names
//! them, `.ci/run` installs them.

#[cfg(test)]
mod openapi {
    #[path = "../rig/rig.rs"]
    #[expect(dead_code, reason = "of the rig, these tests need the process alone")]
    mod rig;

    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};

    use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
    use rig::server::{Home, Server};
    use serde_json::json;

    const CONFIG: &str = include_str!("openapi/server.toml");
    const SECRET: &str = "only-for-this-test-0123456789abcdef";
    /// Bound of the whole run, in seconds.
    const SECONDS_MAX: &str = "420";
    /// Cases per operation and phase.
    const EXAMPLES: &str = "25";
    /// The same cases every time: what fails here fails everywhere.
    const SEED: &str = "1";

    #[test]
    fn the_document_is_valid_and_the_server_keeps_its_word() {
        let Some(python) = python() else {
            let missing = "Python with tests/openapi/requirements.txt is missing: python3 -m venv \
                           target/python && target/python/bin/pip install -r \
                           tests/openapi/requirements.txt";
            let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!is_ci, "{missing}");
            // Past the harness, which keeps to itself what a test says that passes.
            writeln!(std::io::stderr(), "\n*** NOT TESTED: the OpenAPI document. {missing}\n")
                .unwrap();
            return;
        };
        let home = Home::new(CONFIG);
        let mut program = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        program
            .current_dir(home.path(""))
            .env("JWT_SECRET", SECRET)
            .args(["--log", "warn,greenroom::app=info"]);
        let server = Server::start(program);

        let document = server.send("GET", "/doc", &[("authorization", &bearer())], None);
        assert_eq!(document.status, 200);
        home.write("openapi.json", &document.text());
        let validated = Command::new(python.join("python"))
            .args(["-m", "openapi_spec_validator", "--schema", "3.1"])
            .arg(home.path("openapi.json"))
            .output();
        succeeded(&validated.unwrap());

        let address = format!("http://{}/doc", server.address);
        let tested = Command::new(python.join("st"))
            .args(["run", &address, "--checks", "all"])
            .args(["--phases", "examples,coverage,fuzzing,stateful"])
            .args(["--header", &format!("authorization: {}", bearer())])
            .args(["--max-examples", EXAMPLES, "--max-time", SECONDS_MAX, "--seed", SEED])
            .args(["--generation-database", "none", "--no-color"])
            .current_dir(home.path(""))
            .output();
        succeeded(&tested.unwrap());
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

    fn succeeded(output: &Output) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    }

    /// The folder with the programs: the one that `.ci/run` makes, or what the machine has.
    fn python() -> Option<PathBuf> {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python/bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(own).chain(std::env::split_paths(&path));
        let has_both = |folder: &PathBuf| {
            let finds = Command::new(folder.join("python"))
                .args(["-c", "import openapi_spec_validator, schemathesis"])
                .output();
            finds.is_ok_and(|output| output.status.success()) && folder.join("st").is_file()
        };
        folders.filter(|folder| folder.join("st").is_file()).find(has_both)
    }
}
