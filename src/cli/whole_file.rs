//! Files that are written whole or not at all.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a file beside its place, then puts it there: a reader, and a failure half-way, finds the
/// old one.
pub(super) fn write_whole(file: &Path, content: &[u8], mode: Permissions) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut partial = tempfile::Builder::new()
        .prefix(".greenroom-")
        .permissions(mode)
        .tempfile_in(folder.unwrap_or_else(|| Path::new(".")))?;
    partial.write_all(content)?;
    partial.persist(file).map(drop).map_err(|refused| refused.error)
}
