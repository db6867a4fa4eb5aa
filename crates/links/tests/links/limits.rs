//! Readers that do not read, messages that are too large, and too many of them.

use std::sync::atomic::AtomicUsize;

use support::proxy::{Proxy, Way};

use super::*;

/// Starts two servers; the second answers "endless" with answers of a size, without end. Returns
/// the number of answers that were asked for.
fn endless_pair(bytes: usize) -> (Server, Server, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::default());
    let counted = Arc::clone(&count);
    let (asker, answerer) = pair(move |from, request| {
        if request != b"endless" {
            return echo(from, request);
        }
        let counted = Arc::clone(&counted);
        let answer = move || {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            let mut answer = vec![0; bytes];
            answer[..8].copy_from_slice(&number.to_be_bytes());
            answer
        };
        stream::repeat_with(answer).boxed()
    });
    (asker, answerer, count)
}

async fn is_held_up_alone(bytes: usize, most: usize) {
    let (asker, answerer, count) = endless_pair(bytes);
    let mut exchange = asker.ask(&answerer, "endless");
    eventually("full", || (count.load(Ordering::SeqCst) == most).then_some(()));
    for number in 0u8..100 {
        assert_eq!(all(asker.ask(&answerer, [number])).await, [Ok(vec![number])]);
    }
    assert_eq!(count.load(Ordering::SeqCst), most, "no more than there is room for");
    for number in 0usize..200 {
        let answer = next(&mut exchange).await.unwrap().unwrap();
        assert_eq!(answer[..8], number.to_be_bytes());
    }
    assert!(count.load(Ordering::SeqCst) <= 200 + most);
}

#[tokio::test]
async fn a_reader_that_does_not_read_holds_up_its_own_exchange_alone() {
    is_held_up_alone(8, 16).await;
}

#[tokio::test]
async fn a_reader_of_large_answers_holds_up_its_own_exchange_alone() {
    is_held_up_alone(100 * 1024, 3).await;
}

fn small_messages() -> LinkSettings {
    LinkSettings { message_bytes_max: 1024 * 1024, ..settings() }
}

#[tokio::test]
async fn messages_that_are_too_large_are_not_sent() {
    const MOST: usize = 1024 * 1024;
    let answer = |_, request: Vec<u8>| match request.as_slice() {
        b"large" => stream::iter([vec![0; MOST], vec![0; MOST + 1], Vec::new()]).boxed(),
        _ => stream::iter([request.len().to_be_bytes().to_vec()]).boxed(),
    };
    // the smaller limit of both is valid
    let asker = Server::start(&settings(), &identity(1), echo);
    let answerer = Server::start(&small_messages(), &identity(2), answer);
    asker.connect(answerer.node, answerer.port());
    assert_eq!(
        all(asker.ask(&answerer, vec![0; MOST + 1])).await,
        [Err(LinkError::TooLarge)],
        "it could never arrive"
    );
    let answers = all(asker.ask(&answerer, vec![0; MOST])).await;
    assert_eq!(answers, [Ok(MOST.to_be_bytes().to_vec())]);
    let answers = all(asker.ask(&answerer, "large")).await;
    assert!(answers == [Ok(vec![0; MOST]), Err(LinkError::Failed)]);
    assert!(asker.figures_of(answerer.node).unwrap().is_connected);
}

#[tokio::test]
async fn requests_are_refused_while_too_much_waits() {
    const SIZE: usize = 512 * 1024;
    let answerer = Server::echoing(2);
    let asker = Server::start(&small_messages(), &identity(1), echo);
    let proxy = Proxy::to(answerer.port());
    asker.connect(answerer.node, proxy.port());
    proxy.blackhole(Way::ToServer);
    let mut exchanges = Vec::new();
    // sockets and the proxy hold some; a request that is refused ends at once
    let refused = eventually("a full queue", || {
        let mut exchange = asker.ask(&answerer, vec![0; SIZE]);
        let first = futures_util::FutureExt::now_or_never(exchange.next());
        exchanges.extend(first.is_none().then_some(exchange));
        first
    });
    assert_eq!(refused, Some(Err(LinkError::NotSent)));
    let queued_bytes = asker.figures_of(answerer.node).unwrap().queued_bytes;
    assert!(queued_bytes <= 2 * 1024 * 1024, "{queued_bytes}");
    proxy.resume();
    for exchange in exchanges {
        assert!(all(exchange).await == [Ok(vec![0; SIZE])]);
    }
    assert_eq!(asker.figures_of(answerer.node).unwrap().queued_bytes, 0);
}
