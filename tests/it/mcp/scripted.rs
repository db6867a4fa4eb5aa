//! An MCP server of the tests' own: it answers, hangs, dies, floods and lies. It is the test binary
//! itself, started again by the server under test.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

/// Environment variable of the test binary as an MCP server: what it does wrong.
const MODE: &str = "TEST_MCP_MODE";
/// Environment variable: the file to which it appends a line for what it was asked.
const FILE: &str = "TEST_MCP_FILE";
/// File beside that one while the server does not start.
pub(super) const AWAY: &str = "away";

/// Texts in its errors that must not be shown.
const LEAK: &str = " password=x1 ghp_0123456789";

/// Returns the lines of the configuration of a server; `file` records what it was asked.
pub(super) fn config(name: &str, mode: &str, file: &std::path::Path) -> String {
    let program = std::env::current_exe().unwrap();
    let arguments = ["serve_as_mcp_server", "--exact", "--nocapture", "--test-threads=1"];
    let argv: Vec<_> = [program.to_str().unwrap()].into_iter().chain(arguments).collect();
    let (argv, file) = (json!(argv), json!(file));
    format!(
        "[mcp.{name}]\ncommand = {argv}\nenv = {{ {MODE} = \"{mode}\", {FILE} = {file} }}\n\
         restart = {{ delay = \"10ms\", max_delay = \"50ms\" }}\n"
    )
}

/// Serves if this process was started as an MCP server, and then never returns.
pub(crate) fn serve_if_asked() {
    let Ok(mode) = std::env::var(MODE) else { return };
    let file = PathBuf::from(std::env::var_os(FILE).unwrap());
    if file.with_file_name(AWAY).exists() {
        std::process::exit(3);
    }
    let mut server = Scripted { mode: mode.clone(), file, has_grown: false, asked: Vec::new() };
    // the harness has begun a line
    println!();
    match mode.as_str() {
        "silent" => {}
        "noise" => loop {
            println!("this is no JSON");
            eprintln!("out of order");
            if std::io::stdout().flush().is_err() {
                std::process::exit(1);
            }
        },
        "broken" => {
            eprintln!("no key in TOKEN=s3cr3t-token{LEAK}");
            std::process::exit(3);
        }
        _ => {}
    }
    let asked = std::io::stdin().lines().map_while(Result::ok);
    for line in asked {
        let message: Value = serde_json::from_str(&line).unwrap();
        if mode != "silent" {
            server.hear(&message);
        }
    }
    std::process::exit(0);
}

struct Scripted {
    mode: String,
    file: PathBuf,
    has_grown: bool,
    /// Calls that wait for the answer to a question, in the order of their questions.
    asked: Vec<Value>,
}

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{message}").and_then(|()| out.flush()).unwrap_or_else(|_| std::process::exit(0));
}

fn answer(id: &Value, result: &Value) {
    say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn refuse(id: &Value, code: i64, message: &str) {
    say(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }));
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Returns the result of a call that has asked: what it was given.
fn given(message: &Value) -> Value {
    match &message["result"] {
        Value::Null => {
            let mut failed = text(message["error"]["message"].as_str().unwrap());
            failed["isError"] = json!(true);
            failed
        }
        result => text(&result.to_string()),
    }
}

/// A text and a picture, with `n` bytes beside its first ones.
fn picture(arguments: &Value) -> Value {
    let bytes = usize::try_from(arguments["n"].as_u64().unwrap_or_default()).unwrap();
    let data = format!("iVBORw0KGgou{}", "AAAA".repeat(bytes / 3));
    json!({ "content": [
        { "type": "text", "text": "look" },
        { "type": "image", "mimeType": "image/png", "data": data },
    ] })
}

/// An answer of `n` bytes.
pub(super) fn sized(id: &Value, arguments: &Value) -> Value {
    let of = |text: &str| json!({ "jsonrpc": "2.0", "id": id, "result": self::text(text) });
    let bytes = usize::try_from(arguments["n"].as_u64().unwrap_or_default()).unwrap();
    of(&"x".repeat(bytes.saturating_sub(of("").to_string().len())))
}

/// File whose text the tool `sum` has as its description, if it is there: beside the one that is
/// appended to.
fn said_in(file: &std::path::Path) -> Option<String> {
    std::fs::read_to_string(file.with_file_name("said")).ok()
}

fn tool(name: &str, hints: &Value) -> Value {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    json!({ "name": name, "description": format!("Does {name}"), "inputSchema": schema,
            "annotations": hints })
}

impl Scripted {
    fn note(&self, what: &str) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.file);
        file.and_then(|mut file| writeln!(file, "{what}")).unwrap();
    }

    fn times(&self, what: &str) -> usize {
        let noted = std::fs::read_to_string(&self.file).unwrap_or_default();
        noted.lines().filter(|line| *line == what).count()
    }

    fn hear(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(
                id,
                &json!({ "protocolVersion": params["protocolVersion"],
                         "capabilities": { "tools": { "listChanged": true } },
                         "serverInfo": { "name": "scripted", "version": "1" } }),
            ),
            "tools/list" => answer(id, &json!({ "tools": self.tools() })),
            "tools/call" => self.call(id, params),
            "notifications/cancelled" => self.note("cancelled"),
            // no answer yet: the client cancels the call
            "" if message["result"]["action"] == "cancel" => {}
            // the answer to a question
            "" => {
                if let Some(asked) = id.as_u64().and_then(|at| self.asked.get(at as usize)) {
                    answer(asked, &given(message));
                }
            }
            _ if id.is_null() => {}
            method => refuse(id, -32601, &format!("no {method}")),
        }
    }

    /// Asks for a call.
    fn ask(&self, at: usize) {
        let params = json!({ "message": "Sure?", "requestedSchema": { "type": "object",
            "required": ["sure"], "properties": { "sure": { "type": "boolean" } } } });
        say(&json!({ "jsonrpc": "2.0", "id": at, "method": "elicitation/create",
                     "params": params }));
    }

    fn tools(&self) -> Vec<Value> {
        let mut tools = vec![
            tool("echo", &json!({ "readOnlyHint": true })),
            tool("sum", &json!({})),
            tool("fail", &json!({})),
            tool("refuse", &json!({})),
            tool("hang", &json!({})),
            tool("die", &json!({})),
            tool("die_once", &json!({ "idempotentHint": true })),
            tool("stay", &json!({})),
            tool("stay_once", &json!({ "readOnlyHint": true })),
            tool("flood", &json!({})),
            tool("deep", &json!({})),
            tool("chatter", &json!({})),
            tool("grow", &json!({})),
            tool("renew", &json!({})),
            tool("ask", &json!({})),
            tool("vote", &json!({})),
            tool("sign", &json!({})),
            tool("report", &json!({})),
            tool("picture", &json!({ "readOnlyHint": true })),
            tool("sized", &json!({})),
            tool("echo", &json!({})),
            tool("not a name", &json!({})),
            tool(&"long".repeat(20), &json!({})),
        ];
        if let (Some(said), Some(sum)) =
            (said_in(&self.file), tools.iter_mut().find(|tool| tool["name"] == "sum"))
        {
            sum["description"] = json!(said);
        }
        if self.mode == "odd" {
            tools.push(json!({ "name": "bare" }));
        }
        tools.push(json!({ "name": "loose", "inputSchema": { "type": "object",
            "properties": { "a": { "$ref": "https://a.example/schema.json" } } } }));
        if self.has_grown {
            tools.push(tool("grown", &json!({})));
        }
        tools
    }

    fn ask_a_person(&mut self, name: &str, id: &Value) {
        match name {
            "ask" => {
                self.asked.push(id.clone());
                self.ask(self.asked.len() - 1);
            }
            // the first three calls ask together
            "vote" => {
                self.asked.push(id.clone());
                match self.asked.len() {
                    1 | 2 => {}
                    3 => (0..3).for_each(|at| self.ask(at)),
                    more => self.ask(more - 1),
                }
            }
            // the page is asked for once
            _ if self.times(name) == 1 => {
                let page = json!({ "mode": "url", "elicitationId": "e1", "message": "Sign in",
                                   "url": "https://sign.example/in" });
                say(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32042,
                    "message": "sign in first", "data": { "elicitations": [page] } } }));
            }
            _ => answer(id, &text(&format!("{name} is done"))),
        }
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let name = params["name"].as_str().unwrap();
        self.note(name);
        match name {
            "echo" => {
                let key = &params["_meta"]["greenroom/idempotencyKey"];
                let said = json!({ "arguments": params["arguments"], "hasKey": key.is_string() });
                answer(id, &text(&said.to_string()));
            }
            "sum" => {
                let sum = params["arguments"]["n"].as_i64().unwrap_or_default() + 1;
                let mut result = text("not this");
                result["structuredContent"] = json!({ "sum": sum });
                answer(id, &result);
            }
            "picture" => answer(id, &picture(&params["arguments"])),
            "sized" => say(&sized(id, &params["arguments"])),
            "fail" => {
                let mut result = text(&format!("the printer burns{LEAK}"));
                result["isError"] = json!(true);
                answer(id, &result);
            }
            "refuse" => refuse(id, -32602, &format!("n is too small{LEAK}")),
            "ask" | "vote" | "sign" => self.ask_a_person(name, id),
            // it never ends
            "report" => {
                let token = &params["_meta"]["progressToken"];
                let params = json!({ "progressToken": token, "progress": 1, "total": 4,
                                     "message": "sorted ".repeat(100) });
                say(&json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                             "params": params }));
            }
            "hang" => {}
            "die" => std::process::exit(7),
            "die_once" if self.times(name) == 1 => std::process::exit(7),
            "stay" => {}
            "stay_once" if self.times(name) == 1 => {}
            "flood" => {
                let mut out = std::io::stdout().lock();
                let _ = write!(out, "{{\"a\": \"{}", "x".repeat(5 << 20));
                let _ = out.flush();
            }
            "deep" => {
                let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
                answer(id, &json!({ "content": [], "structuredContent": { "deep": deep } }));
            }
            "chatter" => {
                let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".repeat(1000);
                let mut out = std::io::stdout().lock();
                while out.write_all(&ping).and_then(|()| out.flush()).is_ok() {}
                std::process::exit(0);
            }
            "renew" => {
                say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                answer(id, &text("renewed"));
            }
            "grow" => {
                self.has_grown = true;
                say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                answer(id, &text("grown"));
            }
            name => answer(id, &text(&format!("{name} is done"))),
        }
    }
}
