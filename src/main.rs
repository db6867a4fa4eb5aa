//! The `greenroom` binary.

use std::process::ExitCode;

/// Returns the memory of a load that is over to the system, where glibc keeps it.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    greenroom::cli::run(std::env::args_os())
}
