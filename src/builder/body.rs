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
//!     .step(Step::tap("tell", tool("send_mail")).args(json!({ "to": "input.employee" })))
//!     .compile()
//!     .expect("the definition is sound");
//! assert_eq!(plan.definition.steps.len(), 3);
//! ```

use greenroom_actors::domain::definition::{Body, CommandBody, HttpBody, HttpMethod, Projection};
use serde_json::Value;

/// A body that maps: strings are expressions, arrays and objects are taken apart.
pub fn map(value: Value) -> Body {
    Body::Map(Projection(value))
}

/// A body that calls a registered function.
pub fn run(function: impl Into<String>) -> Body {
    Body::Run { function: function.into(), version: None }
}

/// A body that calls another server; its output is the answer, as JSON where that says it is JSON,
/// else as text.
pub fn http(call: Http) -> Body {
    Body::Http(call.0)
}

/// A body that runs a program; its output is what that prints, which is JSON.
pub fn command(run: Command) -> Body {
    Body::Command(run.0)
}

/// A body that calls a tool of the configuration or of Rust code, with the step's `data` or with
/// [`Step::args`](super::Step::args).
pub fn tool(name: impl Into<String>) -> Body {
    Body::Tool { tool: name.into(), args: None }
}

/// A call of another server.
#[derive(Debug, Clone)]
pub struct Http(HttpBody);

impl Http {
    /// A call by a method. The URL is a template; a value in it is one piece of its path or query,
    /// whatever it holds.
    pub fn new(method: HttpMethod, url: impl Into<String>) -> Self {
        Self(HttpBody {
            method,
            url: url.into(),
            headers: Default::default(),
            query: Default::default(),
            body: None,
        })
    }

    /// A GET.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(HttpMethod::Get, url)
    }

    /// A POST. Without a body of its own it sends the step's `data`.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new(HttpMethod::Post, url)
    }

    /// A header: a template, in which `secret:NAME` is a variable of the environment.
    pub fn header(mut self, name: impl Into<String>, template: impl Into<String>) -> Self {
        self.0.headers.insert(name.into(), template.into());
        self
    }

    /// A part of the query. Strings are expressions; none leaves it out, an array repeats it.
    pub fn query(mut self, key: impl Into<String>, value: Value) -> Self {
        self.0.query.insert(key.into(), Projection(value));
        self
    }

    /// What is sent, as JSON. Strings are expressions.
    pub fn body(mut self, value: Value) -> Self {
        self.0.body = Some(Projection(value));
        self
    }
}

/// A run of a program, without a shell.
#[derive(Debug, Clone)]
pub struct Command(CommandBody);

impl Command {
    /// A program: a path, or a name that is looked for in `PATH`.
    pub fn new(program: impl Into<String>) -> Self {
        Self(CommandBody { argv: vec![program.into()], ..CommandBody::default() })
    }

    /// Further arguments. One with `{{ }}` is a template, and one argument whatever it holds.
    pub fn args<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.0.argv.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// What the program reads, as JSON. Strings are expressions. Without it: the step's `data`.
    pub fn input(mut self, value: Value) -> Self {
        self.0.input = Some(Projection(value));
        self
    }

    /// A variable of its environment: a template, in which `secret:NAME` is a variable of the
    /// server's.
    pub fn env(mut self, name: impl Into<String>, template: impl Into<String>) -> Self {
        self.0.env.insert(name.into(), template.into());
        self
    }

    /// The folder that it runs in.
    pub fn cwd(mut self, folder: impl Into<String>) -> Self {
        self.0.cwd = Some(folder.into());
        self
    }

    /// Memory of each of its processes.
    pub fn memory_bytes_max(mut self, bytes: u64) -> Self {
        self.0.memory_bytes_max = Some(bytes);
        self
    }

    /// What it may print.
    pub fn output_bytes_max(mut self, bytes: u64) -> Self {
        self.0.output_bytes_max = Some(bytes);
        self
    }
}
