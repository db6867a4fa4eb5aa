//! A scripted collector, over real sockets.

use std::collections::VecDeque;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use support::listener::{Request, Watched, hold, listen_with};

/// Reaction to one request.
#[derive(Debug, Clone)]
pub(crate) enum Manner {
    /// Answers with a status, further headers and a body.
    Answer(u16, &'static str, Vec<u8>),
    /// Reads it and does not answer until the client disconnects.
    Hang,
    /// Ends the connection.
    Leave,
}

/// A server that accepts everything, except as scripted for the first requests. Clones are the same
/// collector.
#[derive(Debug, Clone)]
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    shared: Arc<Watched<State>>,
}

#[derive(Debug, Default)]
struct State {
    manners: VecDeque<Manner>,
    sent: Vec<Request>,
    /// Indices of the accepted requests.
    taken: Vec<usize>,
}

/// Returns the spans of a request and the attributes of its resource.
pub(crate) fn spans_of(sent: &Request) -> (Vec<KeyValue>, Vec<Span>) {
    let request = ExportTraceServiceRequest::decode(&sent.body[..]).unwrap();
    let [of_resource] = &request.resource_spans[..] else { panic!("{request:?}") };
    let spans = of_resource.scope_spans.iter().flat_map(|scope| scope.spans.clone());
    (of_resource.resource.clone().unwrap().attributes, spans.collect())
}

impl Collector {
    pub(crate) fn start(manners: impl IntoIterator<Item = Manner>) -> Self {
        let state = State { manners: manners.into_iter().collect(), ..State::default() };
        let (address, shared) = listen_with(state, serve);
        Self { address, shared }
    }

    /// Returns the endpoint for exporters.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all received requests, also refused ones.
    pub(crate) fn sent(&self) -> Vec<Request> {
        self.shared.lock().sent.clone()
    }

    /// Waits until it has received so many requests.
    pub(crate) fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        let state = self.shared.wait(|state| state.sent.len() >= count);
        assert!(state.sent.len() >= count, "{} of {count} requests", state.sent.len());
        state.sent.clone()
    }

    /// Waits until it has accepted so many spans; returns all of them, in the order of arrival.
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
        taken
            .filter(|sent| sent.path.ends_with("/v1/traces"))
            .flat_map(|it| spans_of(it).1)
            .collect()
    }
}

fn serve(shared: &Watched<State>, mut stream: BufReader<TcpStream>) {
    let Some(sent) = Request::read(&mut stream) else { return };
    let manner = shared.change(|state| {
        let manner = state.manners.pop_front();
        let manner = manner.unwrap_or_else(|| Manner::Answer(200, "", Vec::new()));
        if matches!(&manner, Manner::Answer(200..=299, ..)) {
            state.taken.push(state.sent.len());
        }
        state.sent.push(sent);
        manner
    });
    match manner {
        Manner::Answer(status, headers, body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} Said\r\nconnection: close\r\n{headers}content-length: \
                 {length}\r\n\r\n"
            );
            let _ = stream.get_mut().write_all(&[head.as_bytes(), &body].concat());
        }
        Manner::Hang => hold(&mut stream),
        Manner::Leave => {}
    }
}
