//! Requests to the server; each caller sends its next one after the last answer.

use std::net::{SocketAddr, TcpStream};

use crate::Outcome;
use crate::{calls, instance};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// Three steps without a wait.
    Noop3,
    /// Suspends until a person resumes it.
    Approval,
}

impl Work {
    fn execute(self, stream: &mut TcpStream) -> Outcome<()> {
        let (workflow, body, mark) = match self {
            Self::Noop3 => ("noop3", "{\"input\":{\"n\":1}}", "\"completed\""),
            Self::Approval => {
                let body = "{\"input\":{\"employee\":\"ann\",\"amount\":700}}";
                ("approval", body, "\"suspended\"")
            }
        };
        instance::execute(stream, workflow, body, mark)
    }
}

/// Executes so many times over several connections; returns executions per second.
pub(crate) fn execute(address: SocketAddr, work: Work, executions: usize) -> Outcome<f64> {
    let run = |stream: &mut TcpStream| work.execute(stream);
    calls::execute_many(address, executions, run).map(|(rate, _)| rate)
}

pub(crate) fn execute_once(address: SocketAddr, work: Work) -> Outcome<()> {
    work.execute(&mut calls::connect(address)?)
}

/// Returns the body at a path.
pub(crate) fn get(address: SocketAddr, path: &str) -> Outcome<String> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    calls::call(&mut calls::connect(address)?, &request)
}
