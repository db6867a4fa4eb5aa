//! Refusals to copy what ends with its process.

use std::error::Error;
use std::path::Path;

use greenroom_store_codec::dump::{Source, Target};
use greenroom_store_sqlite::{Backup, Restored};

use super::Memory;
use crate::app::store::copying::Copies;
use crate::config::Config;

const NOT_KEPT: &str = "\"memory:\" ends with its process, so it cannot be copied";

impl Copies for Memory {
    fn back_up(&self, _: &Path) -> Result<Backup, Box<dyn Error>> {
        Err("the configured store is \"memory:\", which cannot be backed up".into())
    }

    fn restore(&self, _: &Path, _: bool) -> Result<Restored, Box<dyn Error>> {
        Err("the configured store is \"memory:\", which ends with its process".into())
    }

    fn source(&self, _: &Config) -> Result<Box<dyn Source>, Box<dyn Error>> {
        Err(NOT_KEPT.into())
    }

    fn target(&self, _: &Config) -> Result<Box<dyn Target>, Box<dyn Error>> {
        Err(NOT_KEPT.into())
    }
}
