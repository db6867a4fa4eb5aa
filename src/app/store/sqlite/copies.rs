//! Backups and copies of a file.

use std::error::Error;
use std::path::Path;

use greenroom_store_codec::dump::{Source, Target};
use greenroom_store_sqlite::{Backup, FileSource, FileTarget, Restored, back_up, restore};

use super::File;
use crate::app::store::copying::Copies;
use crate::config::Config;

impl Copies for File<'_> {
    fn back_up(&self, target: &Path) -> Result<Backup, Box<dyn Error>> {
        Ok(back_up(self.0, target)?)
    }

    fn restore(&self, backup: &Path, replaces: bool) -> Result<Restored, Box<dyn Error>> {
        Ok(restore(backup, self.0, replaces)?)
    }

    fn source(&self, _: &Config) -> Result<Box<dyn Source>, Box<dyn Error>> {
        Ok(Box::new(FileSource::open(self.0)?))
    }

    fn target(&self, _: &Config) -> Result<Box<dyn Target>, Box<dyn Error>> {
        Ok(Box::new(FileTarget::create(self.0)?))
    }
}
