//! Packs the built files of the console, so that the binary has them compressed. Without the feature
//! `ui` there is nothing to do.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Content types by extension; a file with another one is an error of the build.
const TYPES: [(&str, &str); 4] = [
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=console/dist");
    if std::env::var_os("CARGO_FEATURE_UI").is_none() {
        return Ok(());
    }
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let built = root.join("console/dist");
    let index = built.join("index.html");
    if !index.is_file() {
        return Err(
            format!("{} is missing: run `npm run build` in console", index.display()).into()
        );
    }
    let mut code = format!("pub(super) const PAGE: &str = include_str!({});\n", literal(&index)?);
    code.push_str("pub(super) const ASSETS: &[(&str, &str, &[u8])] = &[\n");
    let mut assets: Vec<_> = fs::read_dir(built.join("assets"))?.collect::<Result<_, _>>()?;
    assets.sort_by_key(fs::DirEntry::file_name);
    for asset in assets {
        let path = asset.path();
        let name = asset.file_name().into_string().map_err(|_| "a name that is no text")?;
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        let known = TYPES.iter().find(|(known, _)| *known == extension);
        let (_, content_type) = known.ok_or_else(|| format!("{name}: an unknown type"))?;
        let packed = out.join(format!("{name}.gz"));
        fs::write(&packed, gzip(&fs::read(&path)?)?)?;
        let packed = literal(&packed)?;
        writeln!(code, "    ({name:?}, {content_type:?}, include_bytes!({packed})),")?;
    }
    code.push_str("];\n");
    fs::write(out.join("console.rs"), code)?;
    Ok(())
}

fn literal(path: &Path) -> Result<String, Box<dyn Error>> {
    Ok(format!("{:?}", path.to_str().ok_or("a path that is no text")?))
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
