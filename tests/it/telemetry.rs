//! The export of telemetry to a scripted collector that decodes what it receives.

mod collector;
mod outages;
mod server;
