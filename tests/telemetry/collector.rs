//! A collector that behaves as it is told, over real sockets.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use super::rig::PATIENCE;

/// What it does with one request.
#[derive(Debug, Clone)]
pub(crate) enum Manner {
    /// Answers with a status, further headers and a body.
    Answer(u16, &'static str, Vec<u8>),
    /// Reads it and says nothing until the client leaves.
    Hang,
    /// Ends the connection.
    Leave,
}

/// What it was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Takes everything, except what a list of manners says of the first requests. Clones are the same
/// collector.
#[derive(Debug, Clone)]
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    manners: VecDeque<Manner>,
    sent: Vec<Sent>,
    /// Indices of what was taken.
    taken: Vec<usize>,
}

impl Sent {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The spans in it, and what is said of who sent them.
    pub(crate) fn spans(&self) -> (Vec<KeyValue>, Vec<Span>) {
        let request = ExportTraceServiceRequest::decode(&self.body[..]).unwrap();
        let [of_resource] = &request.resource_spans[..] else { panic!("{request:?}") };
        let spans = of_resource.scope_spans.iter().flat_map(|scope| scope.spans.clone());
        (of_resource.resource.clone().unwrap().attributes, spans.collect())
    }
}

impl Collector {
    pub(crate) fn start(manners: impl IntoIterator<Item = Manner>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        shared.lock().manners = manners.into_iter().collect();
        let serving = Arc::clone(&shared);
        // lives as long as the test's process; an idle thread costs nothing
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Self { address, shared }
    }

    /// The address to be told to exporters.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything sent so far, also what was not taken.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.shared.lock().sent.clone()
    }

    /// Waits until it was sent so many requests.
    pub(crate) fn wait_for_requests(&self, count: usize) -> Vec<Sent> {
        let state = self.shared.wait(|state| state.sent.len() >= count);
        assert!(state.sent.len() >= count, "{} of {count} requests", state.sent.len());
        state.sent.clone()
    }

    /// Waits until it has taken so many spans; gives all of them, in the order of their coming.
    pub(crate) fn wait_for_spans(&self, count: usize) -> Vec<Span> {
        let state = self.shared.wait(|state| state.spans().len() >= count);
        let spans = state.spans();
        let names: Vec<_> = spans.iter().map(|span| &span.name).collect();
        assert!(spans.len() >= count, "{} of {count} spans: {names:?}", spans.len());
        spans
    }
}

impl State {
    fn spans(&self) -> Vec<Span> {
        let taken = self.taken.iter().map(|index| &self.sent[*index]);
        taken.filter(|sent| sent.path.ends_with("/v1/traces")).flat_map(|it| it.spans().1).collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, wished: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_timeout_while(self.lock(), PATIENCE, |state| !wished(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn serve(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut stream = BufReader::new(stream);
        let Some(sent) = read_request(&mut stream) else { return };
        let mut state = self.lock();
        let manner = state.manners.pop_front();
        let manner = manner.unwrap_or_else(|| Manner::Answer(200, "", Vec::new()));
        if matches!(&manner, Manner::Answer(200..=299, ..)) {
            let index = state.sent.len();
            state.taken.push(index);
        }
        state.sent.push(sent);
        drop(state);
        self.changed.notify_all();
        match manner {
            Manner::Answer(status, headers, body) => {
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} Said\r\nconnection: close\r\n{headers}content-length: \
                     {length}\r\n\r\n"
                );
                let _ = stream.get_mut().write_all(&[head.as_bytes(), &body].concat());
            }
            Manner::Hang => {
                while stream.get_mut().read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
            }
            Manner::Leave => {}
        }
    }
}

fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Sent> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let (_, length) = headers.iter().find(|(name, _)| name == "content-length")?;
    let mut body = vec![0; length.parse().ok()?];
    stream.read_exact(&mut body).ok()?;
    Some(Sent { path, headers, body })
}
