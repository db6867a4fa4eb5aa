//! Tests against a server that closes connections without notice.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::http_client;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const CUT: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok";
const NONE: &[u8] = b"";

/// Responses to each request of each connection. The server closes a connection after its last
/// response, and refuses further connections.
type Script = &'static [&'static [&'static [u8]]];

/// Starts a server that reports the connection number of every request.
fn server(script: Script) -> (SocketAddr, Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (report, seen) = channel();
    std::thread::spawn(move || {
        for (number, answers) in script.iter().enumerate() {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            for answer in *answers {
                let mut line = String::new();
                while stream.read_line(&mut line).unwrap() > 2 {
                    line.clear();
                }
                report.send(number).unwrap();
                stream.get_mut().write_all(answer).unwrap();
            }
        }
    });
    (address, seen)
}

fn client() -> HttpClient {
    HttpClient::new(|| http_client::builder().no_proxy()).unwrap()
}

/// Lets the client return its connection to the pool, which needs no network.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

async fn text(sent: Result<Response, reqwest::Error>) -> Result<String, reqwest::Error> {
    sent?.text().await
}

#[tokio::test]
async fn a_request_on_a_connection_that_was_closed_meanwhile_is_repeated() {
    let script: Script = &[&[ANSWER, NONE], &[ANSWER]];
    let keyed = |it: RequestBuilder| it.header("Idempotency-Key", "k1");
    let plain = |it: RequestBuilder| it;
    type Change = fn(RequestBuilder) -> RequestBuilder;
    let rows: [(&str, Method, Change, bool); 6] = [
        ("idempotent", Method::GET, plain, true),
        ("idempotent", Method::PUT, plain, true),
        ("idempotent", Method::DELETE, plain, true),
        ("not idempotent", Method::POST, plain, false),
        ("not idempotent", Method::PATCH, plain, false),
        ("with a key", Method::POST, keyed, true),
    ];
    for (name, method, change, is_repeated) in rows {
        let (address, seen) = server(script);
        let (client, url) = (client(), format!("http://{address}/"));
        let request = || change(client.request(method.clone(), &url));
        assert_eq!(text(client.send(request()).await).await.unwrap(), "ok");
        settle().await;
        let second = text(client.send(request()).await).await;
        assert_eq!(second.is_ok(), is_repeated, "{name} {method}: {second:?}");
        let expected: &[usize] = if is_repeated { &[0, 0, 1] } else { &[0, 0] };
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), expected, "{name} {method}");
    }
}

#[tokio::test]
async fn a_repeatable_request_is_repeated_whatever_its_method() {
    let (address, seen) = server(&[&[ANSWER, NONE], &[ANSWER]]);
    let (client, url) = (client(), format!("http://{address}/"));
    for _ in 0..2 {
        let sent = client.send_repeatable(client.request(Method::POST, &url)).await;
        assert_eq!(text(sent).await.unwrap(), "ok");
        settle().await;
    }
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [0, 0, 1]);
}

#[tokio::test]
async fn nothing_else_is_repeated() {
    let rows: [(&str, Script, &[usize]); 4] = [
        ("a new connection", &[&[NONE], &[ANSWER]], &[0]),
        ("an answer that has begun", &[&[ANSWER, CUT], &[ANSWER]], &[0, 0]),
        ("the second attempt", &[&[ANSWER, NONE], &[NONE], &[ANSWER]], &[0, 0, 1]),
        ("an answer that is no HTTP", &[&[ANSWER, b"no\r\n\r\n"], &[ANSWER]], &[0, 0]),
    ];
    for (name, script, expected) in rows {
        let (address, seen) = server(script);
        let (client, url) = (client(), format!("http://{address}/"));
        let mut sent = Ok(String::new());
        for _ in 0..script[0].len() {
            sent = text(client.send(client.request(Method::GET, &url)).await).await;
            settle().await;
        }
        assert!(sent.is_err(), "{name}: {sent:?}");
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), expected, "{name}");
    }
}
