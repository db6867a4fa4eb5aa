//! Black-box tests: the real program in its own process, called over its port, killed and
//! restarted. One binary, so that a change links once.

#[cfg(test)]
mod cli;
#[cfg(test)]
mod clients;
#[cfg(test)]
#[cfg(feature = "postgres")]
mod cluster;
#[cfg(test)]
mod console;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod deploy;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod http;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod mcp_face;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod openapi;
#[cfg(test)]
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(test)]
mod program;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod reload;
#[cfg(test)]
#[cfg(feature = "postgres")]
mod restarts;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod service_manager;
#[cfg(test)]
#[cfg(feature = "postgres")]
mod store_copy;
#[cfg(test)]
#[cfg(feature = "otel")]
mod telemetry;
#[cfg(test)]
mod test_server;

/// Not a test: other tests start this binary again, with this filter, as a server with Rust
/// functions.
#[test]
fn serve_as_child() {
    test_server::serve_if_asked();
}

/// Not a test: servers under test start this binary again, with this filter, as an MCP server.
#[test]
fn serve_as_mcp_server() {
    mcp::serve_if_asked();
}

/// Not a test: MCP's conformance suite starts this binary again, with this filter, to drive the program
/// as an MCP client.
#[test]
fn drive_as_mcp_client() {
    mcp::drive_if_asked();
}
