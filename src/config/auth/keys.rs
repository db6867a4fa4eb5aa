//! Keys of signatures. Secrets are named in the file, never written into it.

use std::io::Read as _;
use std::path::Path;

use toml::de::DeValue;
use url::Url;

use crate::auth::JwtKeys;
use crate::config::entry::{Entry, only_one_of};
use crate::config::secret::{read_variable, secret_name, value_of};
use crate::config::section::Section;
use crate::loopback::is_loopback;

/// Default variable of the secret.
const DEFAULT_VARIABLE: &str = "JWT_SECRET";
/// Largest PEM file, in bytes; keys have a few hundred.
const PEM_BYTES_MAX: u64 = 64 * 1024;

/// The source of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// An environment variable with a secret.
    Secret(String),
    /// A public key as PEM.
    Pem(String),
    /// An environment variable with a public key as PEM.
    PemVariable(String),
    /// The address of a JSON Web Key Set.
    Jwks(Url),
}

impl KeySource {
    /// Reads the configured source, of which there is at most one, or returns the default.
    pub(super) fn read(section: &Section<'_>) -> Option<Self> {
        let read = |key, read: fn(&Entry<'_>) -> Option<Self>| {
            let entry = section.get(key)?;
            Some((key, read(&entry)))
        };
        let written =
            [read("secret", secret), read("public_key", public_key), read("jwks_url", jwks)];
        let mut written: Vec<_> = written.into_iter().flatten().collect();
        if let [(first, _), others @ ..] = &written[..] {
            for (key, _) in others {
                section.key_place(key).refuse(only_one_of(first));
            }
        }
        if written.is_empty() {
            return Some(Self::Secret(DEFAULT_VARIABLE.to_owned()));
        }
        written.swap_remove(0).1
    }

    /// Returns the environment variable of the keys.
    pub(super) fn variable(&self) -> Option<&str> {
        match self {
            Self::Secret(name) | Self::PemVariable(name) => Some(name),
            Self::Pem(_) | Self::Jwks(_) => None,
        }
    }

    /// Returns the environment variable of the secret.
    pub(in crate::config) fn secret_variable(&self) -> Option<&str> {
        match self {
            Self::Secret(name) => Some(name),
            Self::PemVariable(_) | Self::Pem(_) | Self::Jwks(_) => None,
        }
    }

    /// Returns the keys, or the problem of the variable that should contain them.
    pub(super) fn keys(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<JwtKeys, String> {
        let held = |name: &str| value_of(name, &environment).map(String::into_bytes);
        Ok(match self {
            Self::Secret(name) => JwtKeys::Secret(held(name)?),
            Self::PemVariable(name) => JwtKeys::Pem(held(name)?),
            Self::Pem(pem) => JwtKeys::Pem(pem.clone().into_bytes()),
            Self::Jwks(url) => JwtKeys::Jwks(url.clone()),
        })
    }
}

/// Reads the name of a secret. Errors do not repeat the text, which may be the secret itself.
fn secret(entry: &Entry<'_>) -> Option<KeySource> {
    read_variable(entry, DEFAULT_VARIABLE).map(KeySource::Secret)
}

fn public_key(entry: &Entry<'_>) -> Option<KeySource> {
    let DeValue::String(text) = entry.value else {
        return entry.refuse("must be the path of a PEM file, or \"secret:NAME\"");
    };
    if let Some(name) = secret_name(text) {
        return Some(KeySource::PemVariable(name.to_owned()));
    }
    if text.is_empty() || text.contains("-----BEGIN") {
        return entry.refuse("must be the path of a PEM file, or \"secret:NAME\"");
    }
    let folder = Path::new(&*entry.place.source.file).parent().unwrap_or_else(|| Path::new("."));
    match read_pem(&folder.join(&**text)) {
        Ok(pem) => Some(KeySource::Pem(pem)),
        Err(problem) => entry.refuse(problem),
    }
}

fn read_pem(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => format!("cannot be read: {error}"),
    })?;
    let mut pem = String::new();
    match file.take(PEM_BYTES_MAX + 1).read_to_string(&mut pem) {
        Ok(_) if pem.len() as u64 > PEM_BYTES_MAX => Err("is too large for a key".to_owned()),
        Ok(_) => Ok(pem),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

fn jwks(entry: &Entry<'_>) -> Option<KeySource> {
    let url = entry.web_address()?;
    if url.scheme() == "http" && !is_loopback(&url) {
        entry.place.warn("plain http:// allows anyone on the network path to replace the keys");
    }
    Some(KeySource::Jwks(url))
}
