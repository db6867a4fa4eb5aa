//! Cost of WebSocket subscribers: executions per second without any, with one that reads and with
//! many that never read, and the memory of those while events are published.
//!
//! ```text
//! cargo bench --bench watchers
//! cargo bench --bench watchers -- --watchers 1000 --executions 12500
//! ```
//!
//! Each execution of `noop3` is eight events. Fails if the subscribers take more than 64 MB, or one
//! of them neither gets a notice of dropped events nor is disconnected.

#[path = "watchers/arguments.rs"]
mod arguments;
#[path = "growth/calls.rs"]
mod calls;
#[path = "growth/instance.rs"]
mod instance;
#[path = "watchers/server.rs"]
mod server;

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{WebSocket, client};

use crate::arguments::Number;
use crate::calls::Outcome;
use crate::server::Server;

const EVENTS_EACH: usize = 8;
const WARM_UP: usize = 2_000;
const MEMORY_MAX: u64 = 64 * 1024 * 1024;
/// Read timeout of a socket with pending messages.
const SILENCE: Duration = Duration::from_secs(20);

fn main() -> Outcome<()> {
    let (mut watchers, mut executions) = (50, 500);
    arguments::read(&mut [
        Number { name: "watchers", value: &mut watchers, long: 1_000 },
        Number { name: "executions", value: &mut executions, long: 12_500 },
    ])?;
    let server = Server::start("")?;
    server.execute(WARM_UP)?;
    let (alone, _) = server.execute(executions)?;
    let one = with_a_reader(&server, executions)?;
    let idle: Vec<_> = (0..watchers).map(|_| watch(&server)).collect::<Outcome<_>>()?;
    let before = server.instance.memory()?;
    let (many, _) = server.execute(executions)?;
    let grown = server.instance.memory()?.saturating_sub(before);
    let notified = idle.into_iter().filter_map(|mut socket| notice(&mut socket)).count();
    #[expect(clippy::print_stdout, reason = "the figures are what this program is for")]
    {
        println!(
            "executions per second: {alone:.0} without subscribers, {one:.0} with one that reads,"
        );
        println!("{many:.0} with {watchers} that do not: {:.2} of the first", many / alone);
        let events = executions * EVENTS_EACH;
        println!("{events} events were published; memory grew by {:.1} MB", to_megabytes(grown));
        println!("{notified} got a notice, {} were disconnected", watchers - notified);
    }
    if grown > MEMORY_MAX {
        return Err(format!("memory grew by {grown} bytes").into());
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with one digit")]
fn to_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

fn with_a_reader(server: &Server, executions: usize) -> Outcome<f64> {
    let mut socket = watch(server)?;
    socket.get_ref().set_read_timeout(Some(Duration::from_millis(100)))?;
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                // an error is the timeout of one read
                let _ = socket.read();
            }
        });
        let rate = server.execute(executions);
        has_ended.store(true, Ordering::Relaxed);
        rate.map(|(rate, _)| rate)
    })
}

/// Reads until the notice of dropped events; `None` if the socket ends before.
fn notice(socket: &mut WebSocket<TcpStream>) -> Option<()> {
    loop {
        let message = socket.read().ok()?;
        if message.to_text().is_ok_and(|text| text.contains("\"DROPPED\"")) {
            return Some(());
        }
    }
}

fn watch(server: &Server) -> Outcome<WebSocket<TcpStream>> {
    let stream = TcpStream::connect(server.instance.address)?;
    stream.set_read_timeout(Some(SILENCE))?;
    let request =
        format!("ws://{}/ws/observability", server.instance.address).into_client_request()?;
    let (mut socket, _) = client(request, stream).map_err(|error| error.to_string())?;
    socket.read()?;
    Ok(socket)
}
