//! The export of telemetry, to a collector of the tests' own that reads what it is sent.

mod collector;
mod outages;
mod server;
