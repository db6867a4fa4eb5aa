//! Readers of generations over a real port, with a generation that the test plays.

use std::sync::Mutex;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};
use greenroom_actors::agent::generation::GenerationEvent;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::*;
use crate::web::settings::WebConfig;
use crate::web::shutdown::Shutdown;

const PATIENCE: Duration = Duration::from_secs(5);

/// What a handler leaves to the test, once.
type Stage = Data<Mutex<Option<oneshot::Sender<Played>>>>;

/// The generation's end of a stream.
struct Played {
    reader: GenerationSubscriber,
    /// Resolves when the reader lets go of the generation.
    let_go: oneshot::Receiver<()>,
}

async fn handler(request: HttpRequest, settings: Data<Settings>, stage: Stage) -> HttpResponse {
    let reader = open(&request, &settings, GenerationStream::raw()).unwrap();
    let (held, let_go) = oneshot::channel::<()>();
    let played = Played { reader: reader.subscriber(), let_go };
    let sender = stage.lock().unwrap().take().unwrap();
    assert!(sender.send(played).is_ok());
    std::future::ready(reader.respond(held)).await
}

/// A server, a client that has sent its request, and the generation that it asked for.
async fn play(config: WebConfig) -> (ServerHandle, TcpStream, Played) {
    let (sender, played) = oneshot::channel();
    let stage: Stage = Data::new(Mutex::new(Some(sender)));
    let settings = Data::new(Settings::of(config, Shutdown::new()));
    let server = HttpServer::new(move || {
        let app = App::new().app_data(stage.clone()).app_data(settings.clone());
        app.route("/", web::get().to(handler))
    })
    .on_connect(Peer::remember)
    .workers(1)
    .disable_signals()
    .bind(("127.0.0.1", 0))
    .unwrap();
    let address = server.addrs()[0];
    let server = server.run();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let played = tokio::time::timeout(PATIENCE, played).await.unwrap().unwrap();
    (handle, client, played)
}

fn say(reader: &GenerationSubscriber, text: String) -> bool {
    let event = GenerationEvent::TextDelta { id: Arc::from("t1"), delta: text };
    reader.events.try_send(GenerationProgress(Arc::from([event]))).is_ok()
}

async fn is_let_go(played: Played) {
    // the sender is dropped, not used
    tokio::time::timeout(PATIENCE, played.let_go).await.unwrap().unwrap_err();
}

#[actix_web::test]
async fn a_client_that_leaves_is_noticed_while_nothing_is_said() {
    let (server, mut client, played) = play(WebConfig::default()).await;
    assert!(say(&played.reader, "a".to_owned()));
    let mut head = [0; 12];
    client.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    drop(client);
    is_let_go(played).await;
    server.stop(false).await;
}

#[actix_web::test]
async fn a_client_that_does_not_read_is_cut_when_its_queue_is_full() {
    let config = WebConfig { subscriber_queue_bytes: 1 << 20, ..WebConfig::default() };
    let (server, mut client, mut played) = play(config).await;
    // more than the kernel takes in and the queue together
    while played.let_go.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
        say(&played.reader, "x".repeat(100_000));
        tokio::task::yield_now().await;
    }
    let mut rest = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, client.read_to_end(&mut rest)).await.unwrap();
    assert!(reading.is_err() || !rest.ends_with(b"0\r\n\r\n"), "the stream ended as if whole");
    server.stop(false).await;
}
