//! Bounds of histograms, in seconds unless their name says otherwise.

/// Answers over HTTP, as the OpenTelemetry conventions advise.
pub(super) const HTTP: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// Calls of models, tools and agents, as the OpenTelemetry conventions for generative AI advise.
pub(super) const GEN_AI: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// Workflows from start to end; up to a week, because some wait for people.
pub(super) const WORKFLOW: &[f64] = &[
    0.01, 0.04, 0.16, 0.64, 2.56, 10.24, 40.96, 163.84, 600.0, 3600.0, 21600.0, 86400.0, 604800.0,
];

/// Steps; few bounds, because every step of every workflow has this many series.
pub(super) const STEP: &[f64] = &[0.005, 0.02, 0.08, 0.32, 1.28, 5.12, 20.48, 81.92, 600.0, 3600.0];

/// Suspensions, which wait for people or for a time.
pub(super) const WAIT: &[f64] =
    &[1.0, 10.0, 60.0, 300.0, 1800.0, 3600.0, 21600.0, 86400.0, 259200.0, 604800.0, 2592000.0];

/// Delays of timers.
pub(super) const LAG: &[f64] = &[0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 3600.0];

/// Commits of the journal.
pub(super) const COMMIT: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Requests in one commit of the journal.
pub(super) const BATCH_SIZE: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
