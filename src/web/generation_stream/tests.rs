//! Streams of generations over a real port, with the test in the role of the generation.

use std::sync::Mutex;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};
use greenroom_actors::agent::generation::GenerationEvent;
use support::PATIENCE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::*;
use crate::web::peer::Peer;
use crate::web::settings::WebConfig;
use crate::web::shutdown::Shutdown;

/// Passes the generation's end of a stream from the handler to the test.
type Stage = Data<Mutex<Option<oneshot::Sender<Played>>>>;

/// The generation's end of a stream.
struct Played {
    subscriber: GenerationSubscriber,
    /// Resolves when the stream releases the generation.
    released: oneshot::Receiver<()>,
}

async fn handler(request: HttpRequest, settings: Data<Settings>, stage: Stage) -> HttpResponse {
    let stream = open(&request, &settings, GenerationStream::raw()).unwrap();
    let (held, released) = oneshot::channel::<()>();
    let played = Played { subscriber: stream.subscriber(), released };
    let sender = stage.lock().unwrap().take().unwrap();
    assert!(sender.send(played).is_ok());
    std::future::ready(stream.respond(held)).await
}

/// Starts a server and a client that has requested a generation.
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

fn emit(subscriber: &GenerationSubscriber, text: String) -> bool {
    let event = GenerationEvent::TextDelta { id: Arc::from("t1"), delta: text };
    subscriber.events.try_send(GenerationProgress(Arc::from([event]))).is_ok()
}

async fn is_released(played: Played) {
    // The sender is dropped, not used.
    tokio::time::timeout(PATIENCE, played.released).await.unwrap().unwrap_err();
}

#[actix_web::test]
async fn a_disconnect_is_noticed_while_nothing_is_sent() {
    let (server, mut client, played) =
        play(WebConfig { heartbeat: 10 * PATIENCE, ..WebConfig::default() }).await;
    assert!(emit(&played.subscriber, "a".to_owned()));
    let mut head = [0; 12];
    client.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    drop(client);
    is_released(played).await;
    server.stop(false).await;
}

#[actix_web::test]
async fn a_client_that_does_not_read_is_disconnected_when_its_queue_is_full() {
    let config = WebConfig { subscriber_queue_bytes: 1 << 20, ..WebConfig::default() };
    let (server, mut client, mut played) = play(config).await;
    // More than the send buffer and the queue hold.
    while played.released.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
        emit(&played.subscriber, "x".repeat(100_000));
        tokio::task::yield_now().await;
    }
    let mut rest = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, client.read_to_end(&mut rest)).await.unwrap();
    assert!(reading.is_err() || !rest.ends_with(b"0\r\n\r\n"), "the stream ended as if whole");
    server.stop(false).await;
}
