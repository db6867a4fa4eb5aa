//! Callers: each sends its next request when the last one is answered.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::Outcome;

const CALLERS: usize = 16;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// Three steps, and it is over.
    Noop3,
    /// Waits for a person.
    Approval,
}

impl Work {
    fn workflow(self) -> &'static str {
        match self {
            Self::Noop3 => "noop3",
            Self::Approval => "approval",
        }
    }

    fn body(self) -> &'static str {
        match self {
            Self::Noop3 => "{\"input\":{\"n\":1}}",
            Self::Approval => "{\"input\":{\"employee\":\"ann\",\"amount\":700}}",
        }
    }

    /// What an answer has in it when all went well.
    fn mark(self) -> &'static str {
        match self {
            Self::Noop3 => "\"completed\"",
            Self::Approval => "\"suspended\"",
        }
    }
}

/// Executes so often, over several connections; gives how many a second.
#[expect(clippy::cast_precision_loss, reason = "there are few executions")]
pub(crate) fn execute(address: SocketAddr, work: Work, executions: usize) -> Outcome<f64> {
    let (begun, next) = (Instant::now(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let call = || -> Outcome<()> {
            let mut stream = connect(address)?;
            while next.fetch_add(1, Ordering::Relaxed) < executions {
                execute_over(&mut stream, work)?;
            }
            Ok(())
        };
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
        callers.into_iter().try_for_each(|caller| {
            caller.join().unwrap_or_else(|_| Err("a caller has panicked".into()))
        })
    })?;
    Ok(executions as f64 / begun.elapsed().as_secs_f64())
}

pub(crate) fn execute_once(address: SocketAddr, work: Work) -> Outcome<()> {
    execute_over(&mut connect(address)?, work)
}

/// What the server says of itself.
pub(crate) fn metrics(address: SocketAddr) -> Outcome<String> {
    get(address, "/metrics")
}

fn connect(address: SocketAddr) -> Outcome<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Executes a workflow of this name; the answer has this in it when all went well.
pub(crate) fn execute_with(
    address: SocketAddr,
    workflow: &str,
    body: &str,
    mark: &str,
) -> Outcome<()> {
    execute_body(&mut connect(address)?, workflow, body, mark)
}

/// What is at a path.
pub(crate) fn get(address: SocketAddr, path: &str) -> Outcome<String> {
    call(&mut connect(address)?, &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
}

fn execute_over(stream: &mut TcpStream, work: Work) -> Outcome<()> {
    execute_body(stream, work.workflow(), work.body(), work.mark())
}

fn execute_body(stream: &mut TcpStream, workflow: &str, body: &str, mark: &str) -> Outcome<()> {
    let length = body.len();
    let request = format!(
        "POST /workflows/{workflow}/execute HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let answer = call(stream, &request)?;
    if answer.contains(mark) {
        Ok(())
    } else {
        Err(format!("{workflow}: not {mark}: {answer}").into())
    }
}

/// Sends a request and gives the body of the answer, which has a length.
fn call(stream: &mut TcpStream, request: &str) -> Outcome<String> {
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let read = stream.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let whole = text.split_once("\r\n\r\n").and_then(|(head, body)| {
            let length = head.lines().find_map(|line| {
                let line = line.to_ascii_lowercase();
                line.strip_prefix("content-length:")?.trim().parse::<usize>().ok()
            });
            length.filter(|length| body.len() >= *length).map(|_| (head, body))
        });
        match whole {
            Some((head, body)) if head.starts_with("HTTP/1.1 200") => return Ok(body.to_owned()),
            None if read > 0 => {}
            Some(_) | None => return Err(format!("not answered: {text}").into()),
        }
    }
}
