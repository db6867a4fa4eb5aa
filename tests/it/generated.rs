//! Clients generated from the OpenAPI document, against the real program: each is type-checked
//! where its language has types, starts a workflow, runs an agent and reads a refusal. `npm ci` in
//! `tests/clients` and `tests/generated/requirements.txt` install the generators; `.ci/run` does
//! both.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::Programs as _;
use serde_json::{Value, json};
use support::server::{Home, Server};

const CONFIG: &str = include_str!("../clients/server.toml");
/// Arguments of tsc before the file: everything is checked except the libraries' own types.
const TSC: [&str; 12] = [
    "--strict",
    "--skipLibCheck",
    "--target",
    "es2022",
    "--lib",
    "es2022,dom,dom.iterable",
    "--types",
    "node",
    "--module",
    "commonjs",
    "--outDir",
    "js",
];

/// Folders of the generators.
struct Tools {
    /// The packages of Node.js.
    modules: PathBuf,
    /// The programs of Python.
    python: PathBuf,
}

/// A server, its document in a file, and a folder for clients.
struct Bench {
    tools: Tools,
    home: Home,
    server: Server,
}

impl Bench {
    /// Returns `None` if a program is missing, which [`support::not_tested`] reports.
    fn set_up() -> Option<Self> {
        let tools = match Tools::find() {
            Ok(tools) => tools,
            Err(missing) => {
                support::not_tested("generated clients", &missing);
                return None;
            }
        };
        let home = Home::new(CONFIG);
        let mut command = home.greenroom(&[]);
        command.env("TEST_INBOX_KEY", "0123456789abcdef0123456789abcdef");
        let server = Server::start(command);
        let document = server.get("/doc");
        assert_eq!(document.status, 200);
        home.write("openapi.json", &document.text());
        std::os::unix::fs::symlink(&tools.modules, home.path("node_modules")).unwrap();
        Some(Self { tools, home, server })
    }

    /// Runs a program in a client's folder to its end; returns its output.
    fn run(&self, program: &mut Command) -> String {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = std::iter::once(self.tools.python.clone());
        let path = std::env::join_paths(own.chain(std::env::split_paths(&path))).unwrap();
        let run = program
            .current_dir(self.home.path(""))
            .env("PATH", path)
            .env("GREENROOM_URL", format!("http://{}", self.server.address))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .unwrap_or_else(|error| panic!("{program:?}: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&run.stdout), text(&run.stderr));
        assert!(run.status.success(), "{program:?}: {}\n{out}\n{err}", run.status);
        out
    }

    fn generate(&self, generator: &str, folder: &str) {
        let mut command = Command::new(self.tools.python.join("openapi-generator-cli"));
        let properties = "--additional-properties=packageName=greenroom_client";
        command.args(["generate", "-i", "openapi.json", "-g", generator, "-o", folder]);
        self.run(command.arg(properties));
    }

    /// Checks and runs a client in TypeScript.
    fn run_typescript(&self, name: &str) -> String {
        self.copy(&format!("{name}.ts"));
        let tsc = self.tools.modules.join("typescript/bin/tsc");
        self.run(Command::new("node").arg(tsc).args(TSC).arg(format!("{name}.ts")));
        self.run(Command::new("node").arg(format!("js/{name}.js")))
    }

    /// Runs a client in Python that finds the generated package in this folder.
    fn run_python(&self, name: &str, folder: &str) -> String {
        self.copy(&format!("{name}.py"));
        let mut python = Command::new(self.tools.python.join("python"));
        self.run(python.env("PYTHONPATH", self.home.path(folder)).arg(format!("{name}.py")))
    }

    fn copy(&self, name: &str) {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generated").join(name);
        std::fs::copy(own, self.home.path(name)).unwrap();
    }
}

impl Tools {
    /// The error says what is missing and how to get it.
    fn find() -> Result<Self, String> {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let modules = own.join("tests/clients/node_modules");
        for package in ["openapi-fetch", "openapi-typescript", "typescript"] {
            if !modules.join(package).is_dir() {
                return Err(format!("{package} is missing: npm ci in tests/clients"));
            }
        }
        let runs = Command::new("node").arg("--version").output();
        if !runs.is_ok_and(|output| output.status.success()) {
            return Err("Node.js is missing".to_owned());
        }
        let python = own.join("target/python/bin");
        for program in ["python", "openapi-generator-cli", "openapi-python-client"] {
            if !python.join(program).is_file() {
                return Err(format!(
                    "{program} is missing: python3 -m venv target/python && \
                     target/python/bin/pip install -r tests/generated/requirements.txt"
                ));
            }
        }
        Ok(Self { modules, python })
    }
}

fn check(said: &str) {
    let last = said.lines().last().unwrap_or_default();
    let told: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{said}"));
    let expected = json!({
        "status": "completed",
        "result": { "n": 7 },
        "said": "say hello",
        "error": "Agent added-later not found",
    });
    assert_eq!(told, expected);
}

#[test]
fn openapi_typescript_and_openapi_fetch() {
    let Some(bench) = Bench::set_up() else { return };
    let generator = bench.tools.modules.join("openapi-typescript/bin/cli.js");
    let mut command = Command::new("node");
    bench.run(command.arg(generator).args(["openapi.json", "-o", "api.d.ts"]));
    check(&bench.run_typescript("openapi_fetch"));
}

#[test]
fn openapi_generator_for_typescript() {
    let Some(bench) = Bench::set_up() else { return };
    bench.generate("typescript-fetch", "client");
    check(&bench.run_typescript("typescript_fetch"));
}

#[test]
fn openapi_generator_for_python() {
    let Some(bench) = Bench::set_up() else { return };
    bench.generate("python", "client");
    check(&bench.run_python("openapi_generator", "client"));
}

#[test]
fn openapi_python_client() {
    let Some(bench) = Bench::set_up() else { return };
    let mut command = Command::new(bench.tools.python.join("openapi-python-client"));
    command.args(["generate", "--path", "openapi.json", "--output-path", "client"]);
    bench.run(command.arg("--overwrite"));
    check(&bench.run_python("openapi_python_client", "client"));
}
