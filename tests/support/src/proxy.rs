//! A TCP proxy between a client and a server of this machine, which disturbs their connections.
//!
//! It has its own thread: tests of any kind can use it, whatever their own threads wait for.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::listener::reserved_port;

const CHUNK_BYTES: usize = 16 * 1024;
/// Chunks that are under way in one direction of a connection.
const CHUNKS_MAX: usize = 64;

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    ToServer,
    ToClient,
}

/// A proxy. Its connections end when it goes out of scope.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    target: u16,
    /// `None` only while it is dropped.
    changes: Option<mpsc::UnboundedSender<(Change, SyncSender<()>)>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Delay(Duration),
    Blackhole(Way),
    Cut,
    Refuse,
    Resume,
}

/// State of the network that connections follow.
#[derive(Debug, Clone, Default)]
struct Weather {
    delay: Duration,
    blackholes: Vec<Way>,
    /// Connections that are older than the last of so many cuts are reset.
    cuts: u64,
}

impl Proxy {
    /// Starts a proxy to a server at a loopback port, which need not be up.
    pub fn to(target: u16) -> Self {
        let port = reserved_port();
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (changes, changed) = mpsc::unbounded_channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(serve(listener, port, target, changed));
        });
        Self { port, target, changes: Some(changes), thread: Some(thread) }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of the server with this proxy's port in place of the server's.
    pub fn through(&self, url: &str) -> String {
        let [target, port] = [self.target, self.port].map(|port| format!("@127.0.0.1:{port}"));
        assert!(url.contains(&target), "the proxy leads to port {}: {url}", self.target);
        url.replacen(&target, &port, 1)
    }

    /// Passes bytes on so long after their arrival, in each direction.
    pub fn delay(&self, delay: Duration) {
        self.change(Change::Delay(delay));
    }

    /// Passes nothing on in a direction, neither bytes nor ends, until [`Proxy::resume`] passes on
    /// what has gathered. New connections are accepted and stand still as well.
    ///
    /// Unlike with a network that loses packets, the system still confirms what was sent:
    /// keepalives and `tcp_user_timeout` notice nothing, only time limits of the client itself do.
    pub fn blackhole(&self, way: Way) {
        self.change(Change::Blackhole(way));
    }

    /// Resets the connections there are, on both sides. Returns when that is done.
    pub fn cut(&self) {
        self.change(Change::Cut);
    }

    /// Refuses new connections; those there are continue.
    pub fn refuse(&self) {
        self.change(Change::Refuse);
    }

    /// Ends refusals, delays and blackholes.
    pub fn resume(&self) {
        self.change(Change::Resume);
    }

    fn change(&self, change: Change) {
        let (done, is_done) = sync_channel(1);
        let changes = self.changes.as_ref().expect("only a drop ends the proxy");
        changes.send((change, done)).expect("the thread runs as long as the proxy");
        is_done.recv().expect("the thread makes every change");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.changes.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves until the proxy is dropped.
async fn serve(
    listener: std::net::TcpListener,
    port: u16,
    target: u16,
    mut changes: mpsc::UnboundedReceiver<(Change, SyncSender<()>)>,
) {
    let mut listener = Some(TcpListener::from_std(listener).unwrap());
    let (weather, seen) = watch::channel(Weather::default());
    let mut connections = JoinSet::new();
    loop {
        let (change, done) = tokio::select! {
            change = changes.recv() => match change {
                Some(change) => change,
                None => return,
            },
            client = accepted(listener.as_ref()) => {
                // now, and not once it runs: a cut in between counts for it
                let cuts = seen.borrow().cuts;
                connections.spawn(carry(client, target, seen.clone(), cuts));
                continue;
            }
            Some(_) = connections.join_next() => continue,
        };
        match change {
            Change::Delay(delay) => weather.send_modify(|it| it.delay = delay),
            Change::Blackhole(way) => weather.send_modify(|it| it.blackholes.push(way)),
            Change::Cut => {
                weather.send_modify(|it| it.cuts += 1);
                while connections.join_next().await.is_some() {}
            }
            Change::Refuse => listener = None,
            Change::Resume => {
                weather.send_modify(|it| *it = Weather { cuts: it.cuts, ..Weather::default() });
                if listener.is_none() {
                    listener = Some(TcpListener::bind(("127.0.0.1", port)).await.unwrap());
                }
            }
        }
        // the test waits for it
        let _ = done.send(());
    }
}

/// Returns the next client; never without a listener.
async fn accepted(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        if let Ok((client, _)) = listener.accept().await {
            return client;
        }
    }
}

/// Carries a connection until both sides have ended it, or one breaks, or the first cut after so many.
async fn carry(
    mut client: TcpStream,
    target: u16,
    mut weather: watch::Receiver<Weather>,
    cuts: u64,
) {
    let (pumps, mut until_cut) = (weather.clone(), async move || {
        let _ = weather.wait_for(|weather| weather.cuts > cuts).await;
    });
    let server = tokio::select! {
        server = TcpStream::connect(("127.0.0.1", target)) => server.ok(),
        () = until_cut() => None,
    };
    let Some(mut server) = server else {
        let _ = client.set_zero_linger();
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let passing = async {
        tokio::try_join!(
            pump(from_client, to_server, Way::ToServer, pumps.clone()),
            pump(from_server, to_client, Way::ToClient, pumps.clone()),
        )
    };
    let is_ended = tokio::select! {
        passed = passing => passed.is_ok(),
        () = until_cut() => false,
    };
    if !is_ended {
        // closing them now resets them
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

/// Passes bytes on in one direction, and their end.
async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    way: Way,
    mut weather: watch::Receiver<Weather>,
) -> io::Result<()> {
    let (arrivals, mut arrived) = mpsc::channel(CHUNKS_MAX);
    let reading = async move {
        loop {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            let is_end = from.read_buf(&mut chunk).await? == 0;
            if arrivals.send((Instant::now(), chunk)).await.is_err() || is_end {
                return Ok(());
            }
        }
    };
    let writing = async {
        while let Some((at, chunk)) = arrived.recv().await {
            let delay = weather.borrow().delay;
            sleep_until(at + delay).await;
            let passable = weather.wait_for(|weather| !weather.blackholes.contains(&way)).await;
            drop(passable.map_err(io::Error::other)?);
            // an empty chunk is the end
            if chunk.is_empty() {
                return to.shutdown().await;
            }
            to.write_all(&chunk).await?;
        }
        Ok(())
    };
    tokio::try_join!(reading, writing).map(drop)
}
