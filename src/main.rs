//! The `greenroom` binary.

use std::process::ExitCode;

/// Returns memory to the system after a peak of load, unlike the allocator of glibc.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    greenroom::cli::run(std::env::args_os())
}
