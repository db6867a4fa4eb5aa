//! Parts of stores that outlive their process: crash marks beside them, and a meter of commits.

use std::path::Path;
use std::sync::Arc;

use greenroom_actors::ports::crash_marks::{CrashMarks, NoCrashMarks};
use greenroom_actors::ports::meter::{JournalMeter, NoMeter};

use crate::adapters::crash_file::CrashFile;
use crate::telemetry::metrics::Metrics;

/// Returns the meter of commits, which counts nothing if metrics are off.
pub(super) fn meter(metrics: Option<&Metrics>) -> Arc<dyn JournalMeter> {
    metrics.map_or_else(|| Arc::new(NoMeter) as _, Metrics::journal)
}

/// Opens the file of crash marks, with its folder. If that fails, the server runs without it.
pub(super) fn crash_marks(path: &Path) -> Arc<dyn CrashMarks> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    match folder.and_then(|()| CrashFile::open(path)) {
        Ok(file) => Arc::new(file),
        Err(error) => {
            log::warn!(
                "{}: {error}: an execution that repeatedly ends the process is not detected",
                path.display()
            );
            Arc::new(NoCrashMarks)
        }
    }
}
