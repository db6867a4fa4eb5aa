//! An MCP server with one tool, over standard input and output. It is this program, started again.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

use crate::calls::Outcome;

/// Argument with which this program is the server.
pub(crate) const ARGUMENT: &str = "--serve-mcp";

/// Serves until its input ends.
pub(crate) fn serve() -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let answer = match message["method"].as_str() {
            Some("initialize") => json!({ "result": {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} }, "serverInfo": { "name": "adder", "version": "1" } } }),
            Some("tools/list") => json!({ "result": { "tools": [{ "name": "add",
                "description": "Adds one", "inputSchema": super::parameters() }] } }),
            Some("tools/call") => json!({ "result": {
                "content": [], "structuredContent": super::sum(&message["params"]["arguments"]) } }),
            _ if message["id"].is_null() => continue,
            _ => json!({ "error": { "code": -32601, "message": "unknown method" } }),
        };
        let Value::Object(mut answer) = answer else { continue };
        answer.insert("jsonrpc".to_owned(), "2.0".into());
        answer.insert("id".to_owned(), message["id"].clone());
        writeln!(out, "{}", Value::Object(answer))?;
        out.flush()?;
    }
    Ok(())
}
