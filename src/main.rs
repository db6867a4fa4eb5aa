//! The `greenroom` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    greenroom::cli::run(std::env::args_os())
}
