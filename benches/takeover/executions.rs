//! The executions, whose ids are chosen so that every slot has as many.

use std::ops::Range;

use crate::share::SLOTS;

/// Numbers of executions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Executions {
    pub(crate) running: usize,
    pub(crate) suspended: usize,
}

/// An execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Execution {
    Running(usize),
    Suspended(usize),
}

impl Executions {
    /// Returns all, those that are suspended first.
    pub(crate) fn all(self) -> impl Iterator<Item = Execution> {
        let numbers = |count: usize| -> Range<usize> { 0..count };
        let running = numbers(self.running).map(Execution::Running);
        numbers(self.suspended).map(Execution::Suspended).chain(running)
    }

    /// Returns those of the first server.
    pub(crate) fn of_first(self, owners: &[usize]) -> Vec<Execution> {
        self.all().filter(|execution| owners[execution.slot()] == 0).collect()
    }
}

impl Execution {
    /// The last three digits of the id.
    pub(crate) fn slot(self) -> usize {
        let (Self::Running(number) | Self::Suspended(number)) = self;
        number % SLOTS
    }

    pub(crate) fn id(self) -> String {
        let (kind, number) = match self {
            Self::Running(number) => ('a', number),
            Self::Suspended(number) => ('b', number),
        };
        format!("01932f6c-9d1e-7a3b-8{kind}00-{number:09x}{:03x}", self.slot())
    }

    pub(crate) fn workflow(self) -> &'static str {
        match self {
            Self::Running(_) => "nap",
            Self::Suspended(_) => "approval",
        }
    }

    /// Returns the request that starts it, and the text that shows that it has started.
    pub(crate) fn start(self) -> (String, &'static str) {
        let id = self.id();
        let (action, mark) = match self {
            Self::Running(_) => ("stream", "data:"),
            Self::Suspended(_) => ("execute", "\"suspended\""),
        };
        let body = format!(
            "{{\"input\":{{\"employee\":\"ann\",\"amount\":700}},\
             \"options\":{{\"executionId\":\"{id}\"}}}}"
        );
        (post(&format!("/workflows/{}/{action}", self.workflow()), "", &body), mark)
    }

    /// Returns a request that only the server answers which runs it, and which may be sent again.
    pub(crate) fn question(self) -> String {
        let (id, workflow) = (self.id(), self.workflow());
        let path = format!("/workflows/{workflow}/executions/{id}");
        match self {
            Self::Running(_) => format!("GET {path}/why HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            Self::Suspended(_) => {
                let key = format!("idempotency-key: {id}\r\n");
                post(&format!("{path}/resume"), &key, "{\"resumeData\":{\"approved\":true}}")
            }
        }
    }
}

fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    )
}
