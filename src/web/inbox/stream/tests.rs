//! Streams of the inbox over a real port, with the test in the role of the feed.

use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};
use greenroom_actors::domain::assignment::AskRules;

use greenroom_actors::ports::store::{Ask, AskKind, AskState, AskSubject, AskedCall};
use greenroom_actors::runtime::AskNewsKind;
use support::PATIENCE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::broadcast::{self, Sender};
use tokio::time::timeout;

use super::*;
use crate::api::caller::Caller;
use crate::web::peer::Peer;
use crate::web::settings::WebConfig;
use crate::web::shutdown::Shutdown;

/// News that wait for one subscriber.
const WAITING_MAX: usize = 4096;

struct Site {
    server: ServerHandle,
    shutdown: Shutdown,
    feed: Sender<AskNews>,
    client: TcpStream,
}

async fn handler(
    request: HttpRequest,
    settings: Data<Settings>,
    feed: Data<Sender<AskNews>>,
) -> Answer {
    let watch = Watch::parse(&[], &Caller::unchecked())?;
    respond(&request, &settings, watch, feed.subscribe(), Box::new(|| Timestamp(0)), None)
}

/// Starts a server and a client that has sent its request.
async fn play(config: WebConfig) -> Site {
    let (shutdown, feed) = (Shutdown::new(), broadcast::channel(WAITING_MAX).0);
    let settings = Data::new(Settings::of(config, shutdown.clone()));
    let shared = Data::new(feed.clone());
    let server = HttpServer::new(move || {
        let app = App::new().app_data(shared.clone()).app_data(settings.clone());
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
    let subscribed = async {
        while feed.receiver_count() == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, subscribed).await.unwrap();
    Site { server: handle, shutdown, feed, client }
}

fn news(reason: &str) -> AskNews {
    let ask = Ask {
        id: Arc::from("ask_1"),
        kind: AskKind::Approval,
        state: AskState::Open,
        subject: AskSubject::Call(AskedCall {
            generation_id: Arc::from("g1"),
            agent_id: Arc::from("clerk"),
            tool_call_id: Arc::from("c1"),
            tool_name: Arc::from("pay"),
            step: None,
        }),
        user_id: None,
        reason: Arc::from(reason),
        opened_at: Timestamp(0),
        deadline: None,
        closed_at: None,
        revision: 0,
        rules: AskRules::default(),
        claim: None,
    };
    AskNews::Changed { kind: AskNewsKind::Opened, ask: Arc::new(ask) }
}

/// Reads until the stream has ended, or has this text; returns what was read.
async fn read_until(client: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    let reading = async {
        let mut part = vec![0; 65_536];
        loop {
            match client.read(&mut part).await {
                Ok(length @ 1..) => read.extend_from_slice(&part[..length]),
                Ok(0) | Err(_) => return,
            }
            if String::from_utf8_lossy(&read).contains(text) {
                return;
            }
        }
    };
    timeout(PATIENCE, reading).await.unwrap();
    String::from_utf8_lossy(&read).into_owned()
}

#[actix_web::test]
async fn a_client_that_reads_hears_of_more_than_its_queue_holds() {
    let config = WebConfig { subscriber_queue: 4, ..WebConfig::default() };
    let mut site = play(config).await;
    for number in 0..1000 {
        site.feed.send(news(&format!("number {number}."))).unwrap();
    }
    let read = read_until(&mut site.client, "number 999.").await;
    assert!((0..1000).all(|number| read.contains(&format!("\"number {number}.\""))), "{read}");
    site.server.stop(false).await;
}

#[actix_web::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let stall = Duration::from_millis(200);
    let rows = [
        (
            "reads nothing for too long",
            WebConfig { subscriber_stall: stall, ..WebConfig::default() },
        ),
        ("falls too far behind", WebConfig::default()),
    ];
    for (name, config) in rows {
        let is_stalled = config.subscriber_stall == stall;
        let mut site = play(config).await;
        let large = "x".repeat(100_000);
        let sending = async {
            // more than the send buffer and the queue hold, and then more than the feed
            for number in 0.. {
                if site.feed.receiver_count() == 0 {
                    break;
                }
                if number < 200 || !is_stalled {
                    drop(site.feed.send(news(if number < 200 { &large } else { "more" })));
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, sending).await.expect(name);
        let read = read_until(&mut site.client, "never").await;
        assert!(!read.ends_with("0\r\n\r\n"), "{name}: the stream ended as if whole");
        site.server.stop(false).await;
    }
}

#[actix_web::test]
async fn a_stream_ends_with_the_server() {
    let mut site = play(WebConfig::default()).await;
    site.feed.send(news("before")).unwrap();
    read_until(&mut site.client, "before").await;
    site.shutdown.fire();
    let read = read_until(&mut site.client, "\r\n0\r\n\r\n").await;
    assert!(read.contains(": the server is shutting down"), "{read}");
    assert!(read.ends_with("\r\n0\r\n\r\n"), "a proper end: {read}");
    site.server.stop(false).await;
}
