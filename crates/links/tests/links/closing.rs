//! The end of links.

use std::net::TcpStream;

use super::*;

#[tokio::test]
async fn closed_links_answer_and_ask_nothing() {
    let (asker, answerer, is_dropped) = waiting_pair(&settings());
    asker.connect(answerer.node, answerer.port());
    let mut exchange = asker.ask(&answerer, "x");
    assert_eq!(next(&mut exchange).await, Some(Ok(b"x".to_vec())));
    asker.links.close();
    assert_eq!(all(exchange).await, [Err(LinkError::Lost)]);
    assert_eq!(all(asker.ask(&answerer, "x")).await, [Err(LinkError::NotSent)]);
    is_true("the end of the answers", &is_dropped);
    assert!(TcpStream::connect(asker.links.address()).is_err(), "the listener is closed");
    asker.links.close();
}

#[tokio::test]
async fn links_close_when_they_are_dropped() {
    let (asker, answerer, is_dropped) = waiting_pair(&settings());
    asker.connect(answerer.node, answerer.port());
    let mut exchange = asker.ask(&answerer, "x");
    assert_eq!(next(&mut exchange).await, Some(Ok(b"x".to_vec())));
    let address = answerer.links.address();
    drop(answerer);
    assert!(is_dropped.load(Ordering::SeqCst));
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(all(exchange).await, [Err(LinkError::Lost)]);
}

#[tokio::test]
async fn an_answerer_may_close_the_links() {
    let links = Arc::new(std::sync::Mutex::new(None::<Arc<TcpLinks>>));
    let closed = Arc::clone(&links);
    let answerer = Server::start(&settings(), &identity(2), move |from, request| {
        if let Some(links) = closed.lock().unwrap().take() {
            links.close();
        }
        echo(from, request)
    });
    let asker = Server::echoing(1);
    asker.connect(answerer.node, answerer.port());
    let Server { node, links: closing, .. } = answerer;
    *links.lock().unwrap() = Some(Arc::new(closing));
    let exchange = asker.links.open(node, b"x"[..].into());
    // with or without its answer
    let _ = all(exchange).await;
    eventually("a refusal", || asker.links.has_ended(node).then_some(()));
}
