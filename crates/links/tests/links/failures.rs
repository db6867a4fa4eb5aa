//! Servers that end, restart, leave or fall silent, and networks that break.

use support::proxy::{Proxy, Way};

use super::raw::{ANSWER_END, PING, REQUEST_END, Raw};
use super::*;

#[tokio::test]
async fn without_a_connection_requests_are_not_sent() {
    let asker = Server::echoing(1);
    let (unknown, silent) = (NodeId(2), NodeId(3));
    asker.list(&[(silent, reserved_port())]);
    asker.fails_to_connect(silent);
    for node in [unknown, silent] {
        let exchange = asker.links.open(node, b"x"[..].into());
        assert_eq!(all(exchange).await, [Err(LinkError::NotSent)]);
        assert!(!asker.links.has_ended(node), "its address may be wrong");
    }
    assert!(!asker.figures_of(silent).unwrap().is_connected);
}

#[tokio::test]
async fn a_server_that_ends_loses_its_exchanges_and_is_known_to_have_ended() {
    let (asker, answerer, is_dropped) = waiting_pair(&settings());
    asker.connect(answerer.node, answerer.port());
    assert!(!asker.links.has_ended(answerer.node));
    let mut exchange = asker.ask(&answerer, "x");
    assert_eq!(next(&mut exchange).await, Some(Ok(b"x".to_vec())));
    answerer.links.close();
    assert!(is_dropped.load(Ordering::SeqCst), "nothing runs after the end");
    assert_eq!(all(exchange).await, [Err(LinkError::Lost)]);
    eventually("a refusal", || asker.links.has_ended(answerer.node).then_some(()));
    assert_eq!(all(asker.ask(&answerer, "x")).await, [Err(LinkError::NotSent)]);
}

#[tokio::test]
async fn a_server_that_comes_back_is_another_one() {
    let (asker, before) = pair(echo);
    let port = before.port();
    before.links.close();
    let after = Server::start(&settings_at(port), &identity(3), echo);
    let is_noticed = || {
        let figures = asker.figures_of(before.node)?;
        figures.last_error?.contains("another server is at this address").then_some(())
    };
    eventually("the new server at the old address", is_noticed);
    assert_eq!(all(asker.ask(&before, "x")).await, [Err(LinkError::NotSent)]);
    asker.connect(after.node, port);
    assert_eq!(all(asker.ask(&after, "x")).await, [Ok(b"x".to_vec())]);
    assert_eq!(all(asker.ask(&before, "x")).await, [Err(LinkError::NotSent)]);
}

#[tokio::test]
async fn the_connection_to_a_server_that_is_no_longer_listed_ends() {
    let (asker, answerer, is_dropped) = waiting_pair(&settings());
    asker.connect(answerer.node, answerer.port());
    let mut exchange = asker.ask(&answerer, "x");
    assert_eq!(next(&mut exchange).await, Some(Ok(b"x".to_vec())));
    asker.list(&[]);
    assert_eq!(all(exchange).await, [Err(LinkError::Lost)]);
    is_true("the end of the answers", &is_dropped);
    assert!(asker.links.figures().is_empty());
}

#[tokio::test]
async fn a_server_that_is_no_longer_listed_is_not_answered() {
    let (asker, answerer, is_dropped) = waiting_pair(&settings());
    answerer.list(&[(asker.node, asker.port())]);
    answerer.is_connected_to(asker.node);
    asker.connect(answerer.node, answerer.port());
    let mut exchange = asker.ask(&answerer, "x");
    assert_eq!(next(&mut exchange).await, Some(Ok(b"x".to_vec())));
    answerer.list(&[]);
    assert_eq!(all(exchange).await, [Err(LinkError::Lost)]);
    is_true("the end of the answers", &is_dropped);
    let is_refused = || {
        let error = asker.figures_of(answerer.node)?.last_error?;
        (error == "it was informed that this server has left the cluster").then_some(())
    };
    eventually("a refusal", is_refused);
}

#[tokio::test]
async fn a_connection_that_breaks_is_replaced() {
    let (asker, answerer, is_dropped) = waiting_pair(&settings());
    let proxy = Proxy::to(answerer.port());
    asker.connect(answerer.node, proxy.port());
    let mut exchange = asker.ask(&answerer, "x");
    assert_eq!(next(&mut exchange).await, Some(Ok(b"x".to_vec())));
    proxy.refuse();
    proxy.cut();
    assert_eq!(all(exchange).await, [Err(LinkError::Lost)]);
    is_true("the end of the answers", &is_dropped);
    eventually("a refusal", || asker.links.has_ended(answerer.node).then_some(()));
    proxy.resume();
    asker.is_connected_to(answerer.node);
    assert!(!asker.links.has_ended(answerer.node));
    let mut exchange = asker.ask(&answerer, "x");
    assert_eq!(next(&mut exchange).await, Some(Ok(b"x".to_vec())));
}

#[tokio::test]
async fn a_request_that_was_sent_in_part_was_not_sent() {
    let (asker, answerer) = (Server::echoing(1), Server::echoing(2));
    let proxy = Proxy::to(answerer.port());
    asker.connect(answerer.node, proxy.port());
    proxy.blackhole(Way::ToServer);
    // more than sockets and the proxy hold
    let exchange = asker.ask(&answerer, vec![0; 48 * 1024 * 1024]);
    proxy.cut();
    assert_eq!(all(exchange).await, [Err(LinkError::NotSent)]);
}

/// Settings with which silence is noticed after half a second.
fn impatient() -> LinkSettings {
    let times = LinkTimes {
        ping: Duration::from_millis(20),
        silent_pings: 25,
        handshake: Duration::from_millis(500),
        ..settings().times
    };
    LinkSettings { times, ..settings() }
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up() {
    let (asker, answerer, is_dropped) = waiting_pair(&impatient());
    let proxy = Proxy::to(answerer.port());
    asker.connect(answerer.node, proxy.port());
    let mut exchange = asker.ask(&answerer, "x");
    proxy.blackhole(Way::ToClient);
    let last = loop {
        match next(&mut exchange).await.unwrap() {
            Ok(answer) => assert_eq!(answer, b"x"),
            Err(error) => break error,
        }
    };
    assert_eq!(last, LinkError::Lost);
    is_true("the end of the answers", &is_dropped);
    let is_silent = || {
        let error = asker.figures_of(answerer.node)?.last_error?;
        (error == "no answer within 500ms").then_some(())
    };
    eventually("a handshake without an answer", is_silent);
    assert!(!asker.links.has_ended(answerer.node), "it may still run");
}

#[tokio::test]
async fn an_asker_that_falls_silent_is_given_up() {
    let (asker, answerer, is_dropped) = waiting_pair(&impatient());
    let proxy = Proxy::to(answerer.port());
    asker.connect(answerer.node, proxy.port());
    let mut exchange = asker.ask(&answerer, "x");
    assert_eq!(next(&mut exchange).await, Some(Ok(b"x".to_vec())));
    proxy.blackhole(Way::ToServer);
    is_true("the end of the answers", &is_dropped);
    assert_eq!(all(exchange).await, [Err(LinkError::Lost)]);
}

#[test]
fn pings_keep_a_connection_in_which_nothing_happens() {
    let server = Server::start(&impatient(), &identity(2), echo);
    let mut raw = Raw::established(&server, 1);
    // twice as long as silence is tolerated
    for _ in 0..50 {
        raw.receives(PING, 0, b"");
        raw.sends(PING, 0, b"");
    }
    raw.sends(REQUEST_END, 1, b"x");
    let answer = std::iter::repeat_with(|| raw.frame().unwrap()).find(|frame| frame.0 != PING);
    assert_eq!(answer, Some((ANSWER_END, 1, b"x".to_vec())));
}

/// Answers that take longer to make than a silent server is waited for.
#[tokio::test]
async fn a_server_that_is_busy_with_an_answer_is_not_silent() {
    let ping = Duration::from_millis(500);
    let times = LinkTimes { ping, ..settings().times };
    let stall = ping * 2 * times.silent_pings;
    let settings = || LinkSettings { times, ..settings() };
    let answer = move |from, request| {
        // as the reading of a large request does
        std::thread::sleep(stall);
        echo(from, request)
    };
    let asker = Server::start(&settings(), &identity(1), echo);
    let answerer = Server::start(&settings(), &identity(2), answer);
    asker.connect(answerer.node, answerer.port());
    assert_eq!(all(asker.ask(&answerer, "x")).await, [Ok(b"x".to_vec())]);
}
