//! The machine in a sentence, for comparison of results.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Outcome;

const PAGE: [u8; 4096] = [7; 4096];
const WRITES: usize = 200;

/// Describes cores, kernel, and the time to make 4 KiB durable.
pub(crate) fn describe() -> Outcome<String> {
    let cores = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let version = kernel.trim().split('-').next().unwrap_or_default();
    let syncs = describe_syncs(Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    Ok(format!("{cores} cores, Linux {version}; {syncs}"))
}

/// Describes the time to make 4 KiB durable in a folder.
pub(crate) fn describe_syncs(folder: &Path) -> Outcome<String> {
    let mut file = tempfile::tempfile_in(folder)?;
    let growing = median_sync(&mut file)?;
    file.seek(SeekFrom::Start(0))?;
    let existing = median_sync(&mut file)?;
    Ok(format!(
        "fdatasync of 4 KiB: {} µs over existing file space, {} µs when the file grows.",
        existing.as_micros(),
        growing.as_micros()
    ))
}

/// Writes pages from the current position of the file; returns the median time.
fn median_sync(file: &mut File) -> Outcome<Duration> {
    let mut times = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        let begun = Instant::now();
        file.write_all(&PAGE)?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times[WRITES / 2])
}
