//! A server of key sets with configurable answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Answers each connection once. Stops listening when it is dropped.
pub(super) struct KeyServer {
    pub(super) url: String,
    answer: Arc<Mutex<Vec<u8>>>,
    requests: Arc<AtomicUsize>,
    is_open: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Returns a whole answer.
pub(super) fn answer(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// Returns an answer with a key set.
pub(super) fn keys(keys: &[Value]) -> Vec<u8> {
    answer(200, "", &serde_json::json!({ "keys": keys }).to_string())
}

impl KeyServer {
    pub(super) async fn start(first_answer: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let answer = Arc::new(Mutex::new(first_answer));
        let requests = Arc::new(AtomicUsize::new(0));
        let (is_open, opened) = watch::channel(true);
        let (text, count) = (Arc::clone(&answer), Arc::clone(&requests));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (text, count) = (Arc::clone(&text), Arc::clone(&count));
                tokio::spawn(serve(stream, text, count, opened.clone()));
            }
        });
        Self { url, answer, requests, is_open, task }
    }

    pub(super) fn answers(&self, next: Vec<u8>) {
        *self.answer.lock().unwrap() = next;
    }

    /// Returns the number of requests.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Delays answers from now on.
    pub(super) fn hold(&self) {
        self.is_open.send_replace(false);
    }

    pub(super) fn release(&self) {
        self.is_open.send_replace(true);
    }

    /// Waits for that number of requests.
    pub(super) async fn has_requests(&self, times: usize) {
        while self.requests() < times {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for KeyServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: Arc<Mutex<Vec<u8>>>,
    requests: Arc<AtomicUsize>,
    mut is_open: watch::Receiver<bool>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    requests.fetch_add(1, Ordering::SeqCst);
    if is_open.wait_for(|is_open| *is_open).await.is_ok() {
        let bytes = answer.lock().unwrap().clone();
        // clients may disconnect before the end
        let _ = stream.write_all(&bytes).await;
    }
}
