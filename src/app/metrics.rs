//! Metrics of the configured names.

use std::io;
use std::sync::Arc;

use greenroom_actors::ports::meter::{Meter, NoMeter};
use greenroom_actors::registry::Registry;

use crate::config::MetricsConfig;
use crate::telemetry::metrics::Metrics;

/// Creates the metrics; `None` if they are disabled.
#[cfg(feature = "metrics")]
pub(super) fn metrics(
    config: &MetricsConfig,
    registry: &Registry,
) -> io::Result<Option<Arc<Metrics>>> {
    if !config.enabled {
        return Ok(None);
    }
    let metrics = Metrics::new(registry, config.series_max).map_err(io::Error::other)?;
    Ok(Some(Arc::new(metrics)))
}

/// Returns none: this program was built without metrics.
#[cfg(not(feature = "metrics"))]
pub(super) fn metrics(_: &MetricsConfig, _: &Registry) -> io::Result<Option<Arc<Metrics>>> {
    Ok(None)
}

/// Returns the meter of the runtime, which counts nothing if metrics are disabled.
pub(super) fn meter(metrics: Option<&Metrics>) -> Arc<dyn Meter> {
    metrics.map_or_else(|| Arc::new(NoMeter) as _, Metrics::meter)
}
