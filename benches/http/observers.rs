//! Consumers beside the measured load: a collector of telemetry, and a WebSocket that reads every
//! event. Both discard what they receive.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::Outcome;

/// Accepts all telemetry, on threads that end with the process.
pub(crate) fn collector() -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            // a sender may disconnect at any time
            std::thread::spawn(move || accept_all(connection).ok());
        }
    });
    Ok(address)
}

/// Reads requests and answers each with 200.
fn accept_all(connection: TcpStream) -> std::io::Result<()> {
    let mut answers = connection.try_clone()?;
    let mut requests = BufReader::new(connection);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if requests.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        std::io::copy(&mut (&mut requests).take(length), &mut std::io::sink())?;
        answers.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
    }
}

/// Opens `/ws/observability` and reads until the server ends.
pub(crate) fn watch(server: SocketAddr) -> Outcome<()> {
    let mut socket = TcpStream::connect(server)?;
    socket.write_all(
        b"GET /ws/observability HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\n\
          upgrade: websocket\r\nsec-websocket-version: 13\r\n\
          sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )?;
    let mut head = [0; 12];
    socket.read_exact(&mut head)?;
    if head != *b"HTTP/1.1 101" {
        return Err("the server opens no WebSocket".into());
    }
    std::thread::spawn(move || std::io::copy(&mut socket, &mut std::io::sink()));
    Ok(())
}
