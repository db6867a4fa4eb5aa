//! Both sides of the handshake over pipes.

use tokio::io::DuplexStream;

use super::*;
use crate::settings::LinkSecret;

const SECRET: &[u8] = b"sixteen bytes or more";

fn identity(own: i64) -> LinkIdentity {
    let secret = LinkSecret(SECRET.to_vec());
    LinkIdentity { own: NodeId(own), cluster: b"shop".to_vec(), secret }
}

fn greeter(own: i64) -> Greeter {
    Greeter::new(&identity(own), 1000)
}

type Outcome = Result<Session, HandshakeError>;

async fn shaken(
    (asker, asks_over): (&Greeter, Binding),
    (answerer, answers_over): (&Greeter, Binding),
    peer: i64,
) -> (Outcome, Outcome) {
    let (mut left, mut right) = tokio::io::duplex(10_000);
    let asked = async move {
        let outcome = asker.ask(&mut left, NodeId(peer), asks_over).await;
        drop(left);
        outcome
    };
    let answered = async move {
        let outcome = answerer.answer(&mut right, answers_over, |node| node == NodeId(99)).await;
        drop(right);
        outcome
    };
    tokio::join!(asked, answered)
}

async fn refused(asker: &Greeter, answerer: &Greeter, peer: i64) -> (String, String) {
    let (asked, answered) = shaken((asker, None), (answerer, None), peer).await;
    (asked.unwrap_err().to_string(), answered.unwrap_err().to_string())
}

#[tokio::test]
async fn members_agree_on_the_smaller_limits() {
    let large = Greeter::new(&identity(1), 5000);
    let (asked, answered) = shaken((&large, Some([1; 32])), (&greeter(2), Some([1; 32])), 2).await;
    let limits = Limits { message_bytes_max: 1000 };
    assert_eq!(asked.unwrap(), Session { peer: NodeId(2), version: 1, limits });
    assert_eq!(answered.unwrap(), Session { peer: NodeId(1), version: 1, limits });
}

/// Returns a server that speaks other versions of the protocol.
fn of_versions(own: i64, lowest: u16, highest: u16) -> Greeter {
    Greeter { versions: Versions { lowest, highest }, ..greeter(own) }
}

#[tokio::test]
async fn servers_speak_the_highest_version_that_both_know() {
    for ((lowest, highest), expected) in [((1, 4), 3), ((3, 7), 3), ((1, 2), 2)] {
        for (asker, answerer) in [
            (of_versions(1, 1, 3), of_versions(2, lowest, highest)),
            (of_versions(1, lowest, highest), of_versions(2, 1, 3)),
        ] {
            let (asked, answered) = shaken((&asker, None), (&answerer, None), 2).await;
            assert_eq!((asked.unwrap().version, answered.unwrap().version), (expected, expected));
        }
    }
}

#[tokio::test]
async fn servers_without_a_common_version_say_so() {
    let (older, newer) = (of_versions(1, 1, 2), of_versions(2, 3, 5));
    let unknown =
        "none of the versions of the protocol that this server speaks is known there".to_owned();
    let refusal = "it speaks versions 1 to 2 of the protocol, this server 3 to 5".to_owned();
    assert_eq!(refused(&older, &newer, 2).await, (unknown.clone(), refusal));
    let (older, newer) = (of_versions(2, 1, 2), of_versions(1, 3, 5));
    let refusal = "it speaks versions 3 to 5 of the protocol, this server 1 to 2".to_owned();
    assert_eq!(refused(&newer, &older, 2).await, (unknown, refusal));
}

#[tokio::test]
async fn both_sides_know_why_they_are_refused() {
    let other_cluster =
        Greeter::new(&LinkIdentity { cluster: b"mine".to_vec(), ..identity(1) }, 1000);
    let secret = LinkSecret(b"another secret of that size".to_vec());
    let other_secret = Greeter::new(&LinkIdentity { secret, ..identity(1) }, 1000);
    let answerer = greeter(2);
    let same = |text: &str| (text.to_owned(), text.to_owned());
    assert_eq!(refused(&other_cluster, &answerer, 2).await, same("it belongs to another cluster"));
    assert_eq!(
        refused(&other_secret, &answerer, 2).await,
        same("it has another secret; all servers of a cluster must use one database")
    );
    assert_eq!(
        refused(&greeter(1), &answerer, 3).await,
        same("another server is at this address"),
        "a newer process, or this one",
    );
    assert_eq!(refused(&answerer, &greeter(2), 2).await, same("another server is at this address"));
    let (asked, answered) = refused(&greeter(99), &answerer, 2).await;
    assert_eq!(asked, "it was informed that this server has left the cluster");
    assert_eq!(answered, "it has left the cluster");
}

#[tokio::test]
async fn a_connection_that_is_passed_on_is_refused() {
    let (asker, answerer) = (greeter(1), greeter(2));
    for bindings in [(Some([1; 32]), Some([2; 32])), (Some([1; 32]), None)] {
        let (asked, answered) = shaken((&asker, bindings.0), (&answerer, bindings.1), 2).await;
        assert!(matches!(asked, Err(HandshakeError::OtherSecret)), "{asked:?}");
        assert!(matches!(answered, Err(HandshakeError::OtherSecret)), "{answered:?}");
    }
}

/// Answers a handshake in which the other side sends these messages.
async fn answered_after(messages: &[(u8, Vec<u8>)]) -> HandshakeError {
    let (mut left, mut right): (DuplexStream, DuplexStream) = tokio::io::duplex(20_000);
    let mut talk = Talk::new(&mut left);
    for (kind, body) in messages {
        talk.send(*kind, body).await.unwrap();
    }
    let (reading, mut writing) = tokio::io::split(left);
    writing.shutdown().await.unwrap();
    let outcome = greeter(2).answer(&mut right, None, |_| false).await;
    drop(reading);
    outcome.unwrap_err()
}

#[tokio::test]
async fn a_proof_is_worth_nothing_in_another_connection() {
    let (asker, answerer) = (greeter(1), greeter(2));
    let ours = asker.hello(NodeId(2)).unwrap();
    // the greeting of an earlier connection, with the proof that was right there
    let theirs = answerer.hello(NodeId(1)).unwrap();
    let signed = signed(&ours.written(), &theirs.written(), None);
    let proof = asker.proof(ASKER, &signed).as_ref().to_vec();
    assert!(answerer.is_proven(ASKER, &signed, &proof));
    assert!(!answerer.is_proven(ANSWERER, &signed, &proof), "nor in the other direction");
    let error = answered_after(&[(HELLO, ours.written()), (PROOF, proof)]).await;
    assert!(matches!(error, HandshakeError::OtherSecret), "{error:?}");
}

#[tokio::test]
async fn handshakes_are_short_and_in_order() {
    let hello = greeter(1).hello(NodeId(2)).unwrap().written();
    let long = || vec![0; HANDSHAKE_BYTES_MAX];
    let error = answered_after(&[(HELLO, long())]).await;
    assert!(matches!(error, HandshakeError::NoLink), "{error:?}");
    let error = answered_after(&[(HELLO, hello.clone()), (PROOF, long())]).await;
    assert!(matches!(error, HandshakeError::TooLong), "{error:?}");
    let error = answered_after(&[(HELLO, hello.clone()), (READY, Vec::new())]).await;
    assert!(matches!(error, HandshakeError::Malformed), "{error:?}");
    let error = answered_after(&[(HELLO, hello.clone()), (PROOF, Vec::new())]).await;
    assert!(matches!(error, HandshakeError::OtherSecret), "{error:?}");
    let error = answered_after(&[(PROOF, hello)]).await;
    assert!(matches!(error, HandshakeError::NoLink), "{error:?}");
    let error = answered_after(&[]).await;
    assert!(matches!(error, HandshakeError::Ended), "{error:?}");
}
