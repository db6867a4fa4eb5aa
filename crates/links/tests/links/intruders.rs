//! Connections of strangers, and of members that break the protocol.

use super::raw::{ANSWER_END, ENDED, HELLO, PING, PROOF, REFUSED, REQUEST_END, Raw, hello};
use super::*;

/// A server that gives up slow handshakes soon, or late.
fn server(handshake: Duration) -> Server {
    let times = LinkTimes { handshake, ..settings().times };
    Server::start(&LinkSettings { times, ..settings() }, &identity(2), echo)
}

const LATE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn servers_with_another_secret_or_cluster_are_not_connected() {
    let answerer = Server::echoing(2);
    let secret = LinkSecret(b"a secret of another cluster".to_vec());
    let other_secret = LinkIdentity { secret, ..identity(1) };
    let other_cluster = LinkIdentity { cluster: b"another".to_vec(), ..identity(1) };
    for (identity, expected) in [
        (other_secret, "it has another secret; all servers of a cluster must use one database"),
        (other_cluster, "it belongs to another cluster"),
    ] {
        let asker = Server::start(&settings(), &identity, echo);
        asker.list(&[(answerer.node, answerer.port())]);
        assert_eq!(asker.fails_to_connect(answerer.node), expected);
        assert_eq!(all(asker.ask(&answerer, "x")).await, [Err(LinkError::NotSent)]);
        let figures = asker.figures_of(answerer.node).unwrap();
        assert!(!figures.is_connected && !figures.has_ended);
    }
}

#[test]
fn strangers_get_no_answer() {
    let server = server(LATE);
    let long = [0u8, 0, 16, 0].iter().chain(&[1; 4096]).copied().collect();
    let rubbish: [Vec<u8>; 5] = [
        b"GET / HTTP/1.1\r\nHost: greenroom\r\n\r\n".to_vec(),
        vec![0; 100],
        vec![255; 100_000],
        long,
        [0u8, 0, 0, 8, HELLO].iter().chain(b"another").copied().collect(),
    ];
    for bytes in rubbish {
        let mut raw = Raw::connect(&server);
        raw.writes(&bytes);
        assert_eq!(raw.message(), None);
    }
}

#[test]
fn a_greeting_is_not_enough() {
    let server = server(LATE);
    for second in [PROOF, REQUEST_END] {
        let mut raw = Raw::connect(&server);
        raw.says(HELLO, &hello((1, 1), 1, server.node));
        assert_eq!(raw.message().unwrap().0, HELLO);
        assert_eq!(raw.message().unwrap().0, PROOF);
        raw.says(second, &[0; 32]);
        raw.is_ended();
    }
    let mut raw = Raw::connect(&server);
    raw.says(HELLO, &hello((1, 1), 1, server.node));
    raw.writes(&[0, 0, 15, 200]);
    raw.writes(&[PROOF; 4000]);
    raw.is_ended();
}

#[test]
fn unknown_versions_of_the_protocol_are_refused() {
    let server = server(LATE);
    let mut raw = Raw::connect(&server);
    raw.says(HELLO, &hello((2, 9), 1, server.node));
    assert_eq!(raw.message(), Some((REFUSED, vec![1])));
    assert_eq!(raw.message(), None);
    let mut raw = Raw::connect(&server);
    raw.says(HELLO, &hello((0, 9), 1, server.node));
    assert_eq!(raw.message().unwrap().0, HELLO, "one in common is enough");
}

#[test]
fn slow_handshakes_are_given_up() {
    let server = server(Duration::from_millis(50));
    let mut silent = Raw::connect(&server);
    let mut half = Raw::connect(&server);
    half.says(HELLO, &hello((1, 1), 1, server.node));
    assert_eq!(silent.message(), None);
    half.is_ended();
}

#[test]
fn at_most_64_handshakes_are_unfinished() {
    let server = server(LATE);
    let mut strangers: Vec<Raw> = (0..64).map(|_| Raw::connect(&server)).collect();
    // accepted in their order, so all of them have been
    let mut member = Raw::established(&server, 1);
    assert_eq!(strangers[0].message(), None, "the oldest has made room");
    strangers[1].says(HELLO, &hello((1, 1), 3, server.node));
    assert_eq!(strangers[1].message().unwrap().0, HELLO, "the others are waited for");
    member.sends(REQUEST_END, 1, b"x");
    let answer = std::iter::repeat_with(|| member.frame().unwrap()).find(|it| it.0 != PING);
    assert_eq!(answer, Some((ANSWER_END, 1, b"x".to_vec())));
}

#[test]
fn members_that_break_the_protocol_are_disconnected() {
    let server = server(LATE);
    let breaches: [&dyn Fn(&mut Raw); 5] = [
        // a frame that is too long, of which only the length is sent
        &|raw| raw.writes(&[0, 1, 0, 10]),
        &|raw| raw.writes(&[255; 4]),
        &|raw| raw.sends(99, 1, b""),
        &|raw| raw.sends(ANSWER_END, 1, b"x"),
        &|raw| raw.sends(PING, 0, b"x"),
    ];
    for (node, breach) in (10i64..).zip(breaches) {
        let mut raw = Raw::established(&server, node);
        breach(&mut raw);
        raw.is_ended();
    }
}

#[test]
fn a_member_that_connects_again_replaces_its_connection() {
    let server = server(LATE);
    let mut first = Raw::established(&server, 1);
    let mut second = Raw::established(&server, 1);
    first.is_ended();
    second.sends(REQUEST_END, 1, b"x");
    let frames = std::iter::repeat_with(|| second.frame().unwrap()).filter(|it| it.0 != PING);
    let expected = [(ANSWER_END, 1, b"x".to_vec()), (ENDED, 1, Vec::new())];
    assert_eq!(frames.take(2).collect::<Vec<_>>(), expected);
}
