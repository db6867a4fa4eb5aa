//! The service from outside: the real program in its own process, asked over its port.

#[cfg(test)]
mod http {
    #[path = "../rig/rig.rs"]
    mod rig;

    #[path = "../rig/listener.rs"]
    mod listener;

    #[path = "../rig/provider.rs"]
    mod provider;

    mod access;
    mod agent_steps;
    mod approvals;
    mod bodies;
    mod browser;
    mod canaries;
    mod capacity;
    mod console;
    mod custom_routes;
    mod depths;
    mod desk;
    mod documentation;
    mod errors;
    mod failures;
    mod file_size;
    mod fulfilment;
    mod functions;
    mod generation_refusals;
    mod generations;
    mod history;
    mod keys;
    mod leaving;
    mod lists;
    mod logs;
    mod memory;
    mod orders;
    mod origins;
    mod ownership;
    mod pages;
    mod provider_failures;
    mod recollections;
    mod refusals;
    mod replay;
    mod rubbish;
    mod sessions;
    mod shipped;
    mod site;
    mod sockets;
    mod stalled;
    mod start;
    mod store;
    mod streams;
    mod system;
    mod threads;
    mod tool_streams;
    mod tool_troubles;
    mod tools;
    mod traces;
    mod upstream;
    mod watchers;
    mod why;
    mod workflows;

    pub(crate) use rig::lab::serve_if_asked;
}

/// Not a test: the other tests start this binary once more, with this alone, as a server.
#[test]
fn serve_as_child() {
    http::serve_if_asked();
}
