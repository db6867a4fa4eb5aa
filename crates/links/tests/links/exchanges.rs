//! Requests, their answers, and exchanges side by side.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use support::proxy::{Proxy, Way};
use tokio::sync::mpsc;

use super::*;

#[tokio::test]
async fn answers_arrive_in_order() {
    let (asker, answerer) = pair(|from, request| {
        assert_eq!((from, request), (NodeId(1), b"count".to_vec()));
        stream::iter((0u16..1000).map(|number| number.to_be_bytes().to_vec())).boxed()
    });
    let expected: Vec<_> = (0u16..1000).map(|number| Ok(number.to_be_bytes().to_vec())).collect();
    assert_eq!(all(asker.ask(&answerer, "count")).await, expected);
}

#[tokio::test]
async fn answers_arrive_as_they_are_made() {
    let (say, said) = mpsc::unbounded_channel::<Vec<u8>>();
    let said = Mutex::new(Some(said));
    let (asker, answerer) = pair(move |_, _| {
        let said = said.lock().unwrap().take().unwrap();
        stream::unfold(said, async |mut said| Some((said.recv().await?, said))).boxed()
    });
    let mut exchange = asker.ask(&answerer, "follow");
    for word in [b"one".to_vec(), Vec::new(), vec![7; 300_000]] {
        say.send(word.clone()).unwrap();
        assert_eq!(next(&mut exchange).await, Some(Ok(word)));
    }
    drop(say);
    assert_eq!(next(&mut exchange).await, None);
    assert_eq!(next(&mut exchange).await, None, "it stays at its end");
}

#[tokio::test]
async fn an_exchange_may_have_no_answers() {
    let (asker, answerer) = pair(|_, _| stream::empty().boxed());
    assert_eq!(all(asker.ask(&answerer, "")).await, []);
}

#[tokio::test]
async fn servers_ask_each_other_at_the_same_time() {
    let servers: Vec<Server> = (1..=3).map(Server::echoing).collect();
    let listed: Vec<_> = servers.iter().map(|server| (server.node, server.port())).collect();
    servers.iter().for_each(|server| server.list(&listed));
    let mut exchanges = Vec::new();
    for asker in &servers {
        for answerer in servers.iter().filter(|answerer| answerer.node != asker.node) {
            asker.is_connected_to(answerer.node);
            for number in 0u8..100 {
                exchanges.push((number, asker.ask(answerer, [number])));
            }
        }
        assert_eq!(asker.links.figures().len(), 2, "none to itself");
        assert_eq!(all(asker.ask(asker, "x")).await, [Err(LinkError::NotSent)]);
    }
    for (number, exchange) in exchanges {
        assert_eq!(all(exchange).await, [Ok(vec![number])]);
    }
}

/// Larger than everything that sockets and proxies hold.
const LARGE: usize = 48 * 1024 * 1024;

#[tokio::test]
async fn a_large_message_is_unchanged() {
    let (asker, answerer) = pair(echo);
    let large: Vec<u8> = (0..LARGE).map(|index| (index % 251) as u8).collect();
    let answers = all(asker.ask(&answerer, large.clone())).await;
    assert!(answers == [Ok(large)]);
}

#[tokio::test]
async fn small_requests_overtake_a_large_one() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&received);
    let answerer = Server::start(&settings(), &identity(2), move |_, request| {
        noted.lock().unwrap().push(request.len());
        stream::empty().boxed()
    });
    let (asker, proxy) = (Server::echoing(1), Proxy::to(answerer.port()));
    asker.connect(answerer.node, proxy.port());
    proxy.blackhole(Way::ToServer);
    let large = asker.ask(&answerer, vec![0; LARGE]);
    let small = asker.ask(&answerer, vec![0; 10]);
    proxy.resume();
    assert_eq!((all(large).await, all(small).await), (Vec::new(), Vec::new()));
    assert_eq!(*received.lock().unwrap(), [10, LARGE]);
}

#[tokio::test]
async fn first_answers_overtake_streams_and_large_ones() {
    let asked = Arc::new(AtomicUsize::default());
    let counted = Arc::clone(&asked);
    let answerer = Server::start(&settings(), &identity(2), move |_, request| {
        counted.fetch_add(1, Ordering::SeqCst);
        match request.as_slice() {
            b"large" => stream::iter([vec![0; LARGE]]).boxed(),
            b"stream" => stream::iter([Vec::new(), vec![0; LARGE]]).boxed(),
            _ => echo(NodeId(1), request),
        }
    });
    let (asker, proxy) = (Server::echoing(1), Proxy::to(answerer.port()));
    asker.connect(answerer.node, proxy.port());
    let mut exchange = asker.ask(&answerer, "stream");
    assert_eq!(next(&mut exchange).await, Some(Ok(Vec::new())));
    proxy.blackhole(Way::ToClient);
    let (arrive, mut arrived) = mpsc::unbounded_channel();
    let note_arrival = |name: &'static str, exchange: Exchange| {
        let arrive = arrive.clone();
        tokio::spawn(async move {
            assert_eq!(all(exchange).await.len(), 1);
            arrive.send(name).unwrap();
        });
    };
    note_arrival("stream", exchange);
    note_arrival("large", asker.ask(&answerer, "large"));
    note_arrival("small", asker.ask(&answerer, "small"));
    eventually("all requests", || (asked.load(Ordering::SeqCst) == 3).then_some(()));
    proxy.resume();
    let mut order = Vec::new();
    for _ in 0..3 {
        order.push(awaited(arrived.recv()).await.unwrap());
    }
    assert_eq!(order, ["small", "large", "stream"]);
}

#[tokio::test]
async fn answers_are_dropped_with_the_asker() {
    let (asker, answerer, is_dropped) = waiting_pair(&settings());
    asker.connect(answerer.node, answerer.port());
    let mut exchange = asker.ask(&answerer, "x");
    assert_eq!(next(&mut exchange).await, Some(Ok(b"x".to_vec())));
    assert!(!is_dropped.load(Ordering::SeqCst));
    drop(exchange);
    is_true("the end of the answers", &is_dropped);
}

#[tokio::test]
async fn an_answerer_that_panics_ends_its_own_exchange() {
    let (asker, answerer) = pair(|_, request| match request.as_slice() {
        b"now" => panic!("an answerer that panics, on purpose"),
        b"later" => {
            let late = stream::once(async { panic!("answers that panic, on purpose") });
            stream::iter([request]).chain(late).boxed()
        }
        _ => echo(NodeId(1), request),
    });
    assert_eq!(all(asker.ask(&answerer, "now")).await, [Err(LinkError::Failed)]);
    let expected = [Ok(b"later".to_vec()), Err(LinkError::Failed)];
    assert_eq!(all(asker.ask(&answerer, "later")).await, expected);
    assert_eq!(all(asker.ask(&answerer, "x")).await, [Ok(b"x".to_vec())]);
}
