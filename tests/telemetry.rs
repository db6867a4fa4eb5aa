//! The export of telemetry, to a collector of the tests' own that reads what it is sent.
#![cfg(feature = "otel")]

#[cfg(test)]
mod telemetry {
    #[path = "../rig/rig.rs"]
    #[expect(dead_code, reason = "of the rig, these tests need the process alone")]
    mod rig;

    #[path = "../rig/listener.rs"]
    mod listener;

    mod collector;
    mod outages;
    mod server;
}
