//! The log: a failure is there once per server and cause, and the secret never.

use std::sync::{Mutex, OnceLock};

use super::*;

/// Messages of all tests of this process.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Capturing;

impl ::log::Log for Capturing {
    fn enabled(&self, _: &::log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &::log::Record<'_>) {
        SAID.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

fn capture() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        ::log::set_logger(&Capturing).unwrap();
        ::log::set_max_level(::log::LevelFilter::Trace);
    });
}

fn said(words: &str) -> usize {
    SAID.lock().unwrap().iter().filter(|line| line.contains(words)).count()
}

#[test]
fn failed_handshakes_are_logged_once_and_without_the_secret() {
    capture();
    let (asker_node, node) = (NodeId(7001), NodeId(7002));
    let secret = LinkSecret(b"a secret that nothing may show".to_vec());
    let answerer = Server::start(&settings(), &LinkIdentity { secret, ..identity(node.0) }, echo);
    let asker = Server::start(&settings(), &identity(asker_node.0), echo);
    asker.list(&[(node, answerer.port())]);
    asker.fails_to_connect(node);
    let line = format!(
        "cannot connect to server-7002 (node 7002) at 127.0.0.1:{}: it has another secret; all servers of a \
         cluster must use one database; retrying",
        answerer.port()
    );
    eventually("a line", || (said(&line) > 0).then_some(()));
    // the next attempts: another server is asked for and refused as long as these fail
    let other = Server::echoing(7003);
    asker.list(&[(node, answerer.port()), (other.node, other.port())]);
    asker.is_connected_to(other.node);
    answerer.links.close();
    let is_refused = || {
        let error = asker.figures_of(node)?.last_error?;
        error.contains("refused").then_some(())
    };
    eventually("another cause", is_refused);
    eventually("a line", || (said("cannot connect to server-7002") > 1).then_some(()));
    assert_eq!(said(&line), 1);
    assert_eq!((said("a secret that nothing may show"), said("a secret of this cluster")), (0, 0));
}

#[test]
fn a_server_that_has_ended_is_named_without_a_warning() {
    capture();
    let (asker, ended) = (Server::echoing(7011), Server::echoing(7012));
    let address = format!("127.0.0.1:{}", ended.port());
    asker.connect(ended.node, ended.port());
    ended.links.close();
    let line = format!("server-7012 (node 7012) no longer listens at {address}: it has ended");
    eventually("a line", || (said(&line) > 0).then_some(()));
    assert_eq!(said("cannot connect to server-7012"), 0);
}
