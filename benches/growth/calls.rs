//! Requests to a server over kept connections.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const CALLERS: usize = 16;

/// Calls `execute` so many times over several connections; returns executions per second and the
/// longest time of one.
#[expect(clippy::cast_precision_loss, reason = "there are few executions")]
pub(crate) fn execute_many(
    address: SocketAddr,
    executions: usize,
    execute: impl Fn(&mut TcpStream) -> Outcome<()> + Sync,
) -> Outcome<(f64, Duration)> {
    let (begun, next) = (Instant::now(), AtomicUsize::new(0));
    let slowest = std::thread::scope(|scope| {
        let call = || -> Outcome<Duration> {
            let mut stream = connect(address)?;
            let mut slowest = Duration::ZERO;
            while next.fetch_add(1, Ordering::Relaxed) < executions {
                let begun = Instant::now();
                execute(&mut stream)?;
                slowest = slowest.max(begun.elapsed());
            }
            Ok(slowest)
        };
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
        callers.into_iter().try_fold(Duration::ZERO, |slowest, caller| {
            let of_one = caller.join().unwrap_or_else(|_| Err("a caller has panicked".into()));
            Outcome::Ok(slowest.max(of_one?))
        })
    })?;
    Ok((executions as f64 / begun.elapsed().as_secs_f64(), slowest))
}

pub(crate) fn connect(address: SocketAddr) -> Outcome<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends a request and returns the body of the answer, which must have a length.
pub(crate) fn call(stream: &mut TcpStream, request: &str) -> Outcome<String> {
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
            Some(_) | None => return Err(format!("not answered: {text:.300}").into()),
        }
    }
}
