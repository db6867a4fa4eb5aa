//! What survives: the server is killed, drained and crowded, and everything that it has answered
//! is held against what it says afterwards.

#[cfg(test)]
mod crash {
    #[path = "../rig/rig.rs"]
    mod rig;

    #[path = "../rig/listener.rs"]
    mod listener;

    mod backups;
    mod crowd;
    mod dice;
    mod drain;
    mod kills;
    mod ledger;
    mod pills;
    mod promises;
    mod stories;

    pub(crate) use rig::lab::serve_if_asked;
}

/// Not a test: the other tests start this binary once more, with this alone, as a server.
#[test]
fn serve_as_child() {
    crash::serve_if_asked();
}
