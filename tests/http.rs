//! The service from outside: the real program in its own process, asked over its port.

#[cfg(test)]
mod http {
    #[path = "../rig/rig.rs"]
    mod rig;

    mod desk;
    mod functions;
    mod generation_refusals;
    mod generations;
    mod history;
    mod keys;
    mod lists;
    mod memory;
    mod orders;
    mod origins;
    mod refusals;
    mod rubbish;
    mod shipped;
    mod site;
    mod sockets;
    mod start;
    mod store;
    mod streams;
    mod tools;
    mod workflows;

    pub(crate) use rig::lab::serve_if_asked;
}

/// Not a test: the other tests start this binary once more, with this alone, as a server.
#[test]
fn serve_as_child() {
    http::serve_if_asked();
}
