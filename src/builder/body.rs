//! Bodies of steps, for [`Step::then`](super::Step::then) and [`Step::tap`](super::Step::tap).
//!
//! ```
//! use greenroom::builder::{Command, Http, Step, Workflow, command, http, tool};
//! use serde_json::json;
//!
//! let entry = Http::post("https://ledger.example/entries/{{ input.id }}")
//!     .header("authorization", "secret:LEDGER_TOKEN")
//!     .body(json!({ "amount": "input.amount" }));
//! let plan = Workflow::new("expense")
//!     .step(Step::then("book", http(entry)))
//!     .step(Step::then("shape", command(Command::new("jq").args(["-c", "{ id: .id }"]))))
//!     .step(Step::tap("notify", tool("send_mail")).args(json!({ "to": "input.employee" })))
//!     .compile()
//!     .expect("the definition is sound");
//! assert_eq!(plan.definition.steps.len(), 3);
//! ```

use greenroom_actors::domain::definition::{Body, CommandBody, HttpBody, HttpMethod, Mapping};
use serde_json::Value;

/// Returns a body that evaluates a value: strings are expressions, also inside arrays and objects.
pub fn map(value: Value) -> Body {
    Body::Map(Mapping(value))
}

/// Returns a body that calls a registered function.
pub fn run(function: impl Into<String>) -> Body {
    Body::Run { function: function.into(), version: None }
}

/// Returns a body that calls another server. Its output is the answer: JSON if the content type
/// is, else text.
pub fn http(call: Http) -> Body {
    Body::Http(call.0)
}

/// Returns a body that runs a program. Its output is the JSON that the program prints.
pub fn command(run: Command) -> Body {
    Body::Command(run.0)
}

/// Returns a body that calls a tool of the configuration or of Rust code, with the step's `data` or
/// with [`Step::args`](super::Step::args).
pub fn tool(name: impl Into<String>) -> Body {
    Body::Tool { tool: name.into(), args: None }
}

/// A call of another server.
#[derive(Debug, Clone)]
pub struct Http(pub(super) HttpBody);

impl Http {
    /// Creates a call. The URL is a template; a value in it is escaped and stays one part of the
    /// path or query.
    pub fn new(method: HttpMethod, url: impl Into<String>) -> Self {
        Self(HttpBody {
            method,
            url: url.into(),
            headers: Default::default(),
            query: Default::default(),
            body: None,
        })
    }

    /// Creates a GET.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(HttpMethod::Get, url)
    }

    /// Creates a POST. Without [`Http::body`] it sends the step's `data`.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new(HttpMethod::Post, url)
    }

    /// Adds a header: a template in which `secret:NAME` is replaced by an environment variable.
    pub fn header(mut self, name: impl Into<String>, template: impl Into<String>) -> Self {
        self.0.headers.insert(name.into(), template.into());
        self
    }

    /// Adds a query parameter. Strings are expressions; `none` omits it, an array repeats it.
    pub fn query(mut self, key: impl Into<String>, value: Value) -> Self {
        self.0.query.insert(key.into(), Mapping(value));
        self
    }

    /// Sets the body, sent as JSON. Strings are expressions.
    pub fn body(mut self, value: Value) -> Self {
        self.0.body = Some(Mapping(value));
        self
    }
}

/// A run of a program, without a shell.
#[derive(Debug, Clone)]
pub struct Command(pub(super) CommandBody);

impl Command {
    /// Creates a call of a program: a path, or a name in `PATH`.
    pub fn new(program: impl Into<String>) -> Self {
        Self(CommandBody { argv: vec![program.into()], ..CommandBody::default() })
    }

    /// Adds arguments. An argument with `{{ }}` is a template and is never split.
    pub fn args<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.0.argv.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets the standard input, sent as JSON. Strings are expressions. Default: the step's `data`.
    pub fn input(mut self, value: Value) -> Self {
        self.0.input = Some(Mapping(value));
        self
    }

    /// Adds an environment variable: a template in which `secret:NAME` is replaced by a variable of
    /// the server.
    pub fn env(mut self, name: impl Into<String>, template: impl Into<String>) -> Self {
        self.0.env.insert(name.into(), template.into());
        self
    }

    /// Sets the working directory.
    pub fn cwd(mut self, folder: impl Into<String>) -> Self {
        self.0.cwd = Some(folder.into());
        self
    }

    /// Sets the memory limit of each of its processes, in bytes.
    pub fn memory_bytes_max(mut self, bytes: u64) -> Self {
        self.0.memory_bytes_max = Some(bytes);
        self
    }

    /// Sets the limit of its output, in bytes.
    pub fn output_bytes_max(mut self, bytes: u64) -> Self {
        self.0.output_bytes_max = Some(bytes);
        self
    }
}
