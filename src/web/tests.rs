//! The front end over a real port and a real runtime, with a store in memory.

mod access;
mod custom;
mod history;
mod http;
mod log_sockets;
mod lost;
mod memory;
mod metrics;
mod observability;
mod ownership;
mod prefer;
mod sockets;
mod tools;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::function::StepFunction;
use greenroom_actors::ports::clock::{Clock, SystemClock};
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::registry::Registry;
use greenroom_actors::{Runtime, RuntimeLimits, RuntimePorts};
use serde_json::{Value, json};
use support::PATIENCE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::adapters::mock::{MockAction, MockConfig, MockModel, MockRule};
use crate::builder::{Step, Suspend, Workflow};
use crate::web::server::{listen, serve};
use crate::web::settings::WebConfig;
use crate::web::shutdown::Shutdown;

/// A running server.
struct Site {
    address: SocketAddr,
    handle: ServerHandle,
    shutdown: Shutdown,
    store: Arc<MemoryStore>,
    runtime: Runtime,
}

/// Answer of the server.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Asserts the status and the text of a refusal.
    #[track_caller]
    fn assert_refusal(&self, status: u16, text: &str) {
        assert_eq!((self.status, self.json()["error"].as_str()), (status, Some(text)));
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Site {
    async fn start(config: WebConfig) -> Self {
        Self::over(config, registry()).await
    }

    async fn over(config: WebConfig, registry: Registry) -> Self {
        Self::with_clock(config, registry, Arc::new(SystemClock)).await
    }

    async fn with_clock(config: WebConfig, registry: Registry, clock: Arc<dyn Clock>) -> Self {
        Self::limited(config, registry, clock, RuntimeLimits::default()).await
    }

    async fn limited(
        config: WebConfig,
        registry: Registry,
        clock: Arc<dyn Clock>,
        limits: RuntimeLimits,
    ) -> Self {
        let store = Arc::new(MemoryStore::default());
        let runtime =
            Runtime::launch(registry, RuntimePorts::new(Arc::clone(&store) as _, clock), limits)
                .await
                .unwrap();
        let shutdown = Shutdown::new();
        let config = WebConfig { port: 0, workers: 1, ..config };
        let listener = listen(&config).unwrap();
        let address = listener.local_addr().unwrap();
        let own = crate::Handle::new(runtime.clone(), crate::handle::Host::new(address));
        let server = serve(listener, own, config, shutdown.clone()).unwrap();
        let handle = server.handle();
        actix_web::rt::spawn(server);
        Self { address, handle, shutdown, store, runtime }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", None).await
    }

    /// Requests a path and returns the data of the answer.
    async fn data(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()["data"].take()
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "", Some(&body.to_string())).await
    }

    /// Sends one request on a new connection.
    async fn send(&self, method: &str, path: &str, headers: &str, body: Option<&str>) -> Answer {
        let mut stream = self.connect().await;
        let body = body.unwrap_or_default();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}\
             content-length: {length}\r\n\r\n{body}",
            self.address
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let reading = stream.read_to_end(&mut bytes);
        tokio::time::timeout(PATIENCE, reading).await.unwrap().unwrap();
        answer_of(&bytes)
    }
}

/// Reads until the text contains `mark`, and returns all of it.
async fn read_until(stream: &mut TcpStream, mark: &str) -> String {
    let mut bytes = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&bytes).contains(mark) {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the connection has ended");
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn answer_of(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

pub(super) fn registry() -> Registry {
    let noop = Workflow::new("noop")
        .input_schema(json!({ "type": "object", "required": ["n"],
                              "properties": { "n": { "type": "integer" } } }))
        .step(Step::map("one", json!({ "n": "data.n + 1" })))
        .step(Step::map("two", json!({ "n": "data.n + 1" })));
    let approval = Workflow::new("approval")
        .resume_schema(json!({ "type": "object", "required": ["ok"] }))
        .step(Step::map("ask", json!({ "ok": "resume.ok" })).suspend(Suspend::always()))
        .step(Step::map("done", json!({ "ok": "data.ok" })));
    let failing = Workflow::new("failing").step(Step::map("bad", json!("input.missing.key")));
    let waiting = Workflow::new("waiting").step(Step::run("wait", "wait"));
    let wait: StepFunction = Arc::new(|_| Box::pin(std::future::pending()));
    let workflows = [noop, approval, failing, waiting]
        .map(|workflow| Arc::new(workflow.compile().unwrap()))
        .map(|plan| (plan.definition.id.clone(), plan));
    let slow = MockRule {
        when: Some("'slow' in prompt".to_owned()),
        delay: 10 * PATIENCE,
        action: MockAction::Default,
    };
    let config = MockConfig { rules: vec![slow], ..MockConfig::default() };
    let agent = AgentDefinition {
        id: "assistant".to_owned(),
        name: "Assistant".to_owned(),
        description: "Repeats".to_owned(),
        model: "offline".into(),
        memory: true,
        ..AgentDefinition::default()
    };
    Registry {
        workflows: workflows.into(),
        agents: [("assistant".to_owned(), Arc::new(agent))].into(),
        models: [("offline".to_owned(), Arc::new(MockModel::new(config).unwrap()) as _)].into(),
        functions: [("wait".to_owned(), wait)].into(),
        ..Registry::default()
    }
}
