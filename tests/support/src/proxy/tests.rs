//! Connections through a proxy to an echo.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use super::*;
use crate::PATIENCE;
use crate::listener::listen;

/// Longer than an answer over an undisturbed connection takes.
const MOMENT: Duration = Duration::from_millis(200);

/// Starts a server that gives each line back, and a proxy to it.
fn echo() -> Proxy {
    let address = listen(|mut stream| {
        let mut line = String::new();
        while stream.read_line(&mut line).is_ok_and(|count| count > 0) {
            let _ = stream.get_mut().write_all(line.as_bytes());
            line.clear();
        }
    });
    Proxy::to(address.port())
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn of(proxy: &Proxy) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", proxy.port()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn receive(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Sends a line and returns the answer.
    fn echoed(&mut self, line: &str) -> io::Result<String> {
        self.send(line);
        self.receive()
    }

    /// Returns true if nothing arrives for a moment.
    fn is_silent(&mut self) -> bool {
        let set_timeout = |client: &Self, time| client.0.get_ref().set_read_timeout(Some(time));
        set_timeout(self, MOMENT).unwrap();
        let received = self.receive();
        set_timeout(self, PATIENCE).unwrap();
        received.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

#[test]
fn bytes_and_ends_pass() {
    let proxy = echo();
    let mut client = Client::of(&proxy).unwrap();
    assert_eq!(client.echoed("one").unwrap(), "one");
    let long = "x".repeat(CHUNK_BYTES * 3);
    assert_eq!(client.echoed(&long).unwrap(), long, "more than a chunk");
    client.send("last");
    client.0.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = String::new();
    client.0.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "last\n", "the answer comes before the end");
}

#[test]
fn a_delay_is_added_in_each_direction() {
    let proxy = echo();
    let mut client = Client::of(&proxy).unwrap();
    proxy.delay(MOMENT);
    let begin = Instant::now();
    // sent at once, they are under way at once
    for line in ["one", "two", "three"] {
        client.send(line);
    }
    for line in ["one", "two", "three"] {
        assert_eq!(client.receive().unwrap(), line);
    }
    let needed = begin.elapsed();
    assert!(needed >= MOMENT * 2, "{needed:?}");
    proxy.resume();
    assert_eq!(client.echoed("four").unwrap(), "four");
}

#[test]
fn a_blackhole_holds_one_direction() {
    let proxy = echo();
    let (mut early, mut other) = (Client::of(&proxy).unwrap(), Client::of(&proxy).unwrap());
    assert_eq!(early.echoed("one").unwrap(), "one");
    for way in [Way::ToServer, Way::ToClient] {
        proxy.blackhole(way);
        early.send("held");
        assert!(early.is_silent(), "{way:?}");
        let mut late = Client::of(&proxy).unwrap();
        late.send("late");
        assert!(late.is_silent(), "{way:?}: new connections, too");
        proxy.resume();
        assert_eq!(early.receive().unwrap(), "held", "{way:?}");
        assert_eq!(late.receive().unwrap(), "late", "{way:?}");
    }
    assert_eq!(other.echoed("still").unwrap(), "still");
}

#[test]
fn a_cut_resets_the_connections_there_are() {
    let proxy = echo();
    let mut clients: Vec<_> = (0..3).map(|_| Client::of(&proxy).unwrap()).collect();
    for client in &mut clients {
        assert_eq!(client.echoed("one").unwrap(), "one");
    }
    // a connection that stands still is reset as well
    proxy.blackhole(Way::ToClient);
    clients[0].send("held");
    proxy.cut();
    for client in &mut clients {
        assert_eq!(client.receive().unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    proxy.resume();
    assert_eq!(Client::of(&proxy).unwrap().echoed("new").unwrap(), "new");
}

#[test]
fn new_connections_are_refused_until_it_resumes() {
    let proxy = echo();
    let mut early = Client::of(&proxy).unwrap();
    assert_eq!(early.echoed("one").unwrap(), "one");
    for _ in 0..2 {
        proxy.refuse();
        let refused = Client::of(&proxy).err().expect("nothing listens");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(early.echoed("two").unwrap(), "two", "older connections continue");
        proxy.resume();
        assert_eq!(Client::of(&proxy).unwrap().echoed("new").unwrap(), "new");
    }
}

#[test]
fn clients_of_a_server_that_is_down_are_reset() {
    let proxy = Proxy::to(reserved_port());
    let mut client = Client::of(&proxy).unwrap();
    assert_eq!(client.receive().unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn connections_end_with_the_proxy() {
    let proxy = echo();
    let mut client = Client::of(&proxy).unwrap();
    assert_eq!(client.echoed("one").unwrap(), "one");
    let port = proxy.port();
    drop(proxy);
    let end = client.receive();
    assert!(matches!(end.as_deref(), Ok("") | Err(_)), "{end:?}");
    let refused = TcpStream::connect(("127.0.0.1", port)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_cut_ends_although_connections_were_accepted_just_before() {
    let proxy = echo();
    for _ in 0..300 {
        let client = Client::of(&proxy).unwrap();
        // returns once all connections have ended, also those that have not begun to carry
        proxy.cut();
        drop(client);
    }
}
