//! Command line of the examples.

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use greenroom::Greenroom;

#[derive(Parser)]
struct Arguments {
    /// Configuration file.
    #[arg(long, default_value = "config.toml")]
    config: PathBuf,
    /// Port to listen on instead of the configured one.
    #[arg(long)]
    port: Option<u16>,
}

/// Reads the configuration file that the arguments name.
pub(crate) fn greenroom() -> Result<Greenroom, Box<dyn Error>> {
    let Arguments { config, port } = Arguments::parse();
    let greenroom = Greenroom::from_config(config)?;
    Ok(greenroom.configure(|config| config.server.port = port.unwrap_or(config.server.port)))
}
