//! A sparse index of a package registry: a file per package, a line of JSON per version.
//!
//! Only the configured host is contacted, and its responses are limited in size and time.

use std::error::Error;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response, StatusCode, Url};
use semver::Version;
use serde::Deserialize;

use super::address::RegistryAddress;
use crate::http_client;
use crate::maintenance::{IndexError, PACKAGE, PackageIndex};

/// Timeout from the request to the end of the response.
const TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Redirects followed, within the host.
const REDIRECTS_MAX: usize = 5;

/// Path of [`PACKAGE`] in an index: folders are named by its first two and its next two letters.
const FILE: &str = "gr/ee/greenroom";

impl RegistryAddress {
    /// Returns the URL of [`PACKAGE`] in the index.
    fn file(&self) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}{FILE}", self.0.path()));
        url
    }
}

/// A registry, asked over HTTP.
#[derive(Debug)]
pub struct SparseIndex {
    address: RegistryAddress,
    timeout: Duration,
}

/// The used fields of a line of the index.
#[derive(Debug, Deserialize)]
struct Line {
    name: String,
    vers: Version,
    #[serde(default)]
    yanked: bool,
}

impl SparseIndex {
    pub fn new(address: RegistryAddress) -> Self {
        Self { address, timeout: TIMEOUT }
    }

    #[cfg(test)]
    pub(super) fn with_timeout(address: RegistryAddress, timeout: Duration) -> Self {
        Self { address, timeout }
    }

    async fn ask(&self) -> Result<Vec<Version>, IndexError> {
        // A client per request, at most one a minute: no connection stays open.
        let client = client().map_err(|error| {
            log::error!("cannot create the HTTP client for the registry: {error}");
            IndexError::Unreachable
        })?;
        let response = async {
            let call = client.get(self.address.file()).send().await;
            let response = call.map_err(|error| logged(error, IndexError::Unreachable))?;
            match response.status() {
                StatusCode::OK => versions_in(&body(response).await?),
                // An index without the package answers with one of these.
                StatusCode::NOT_FOUND
                | StatusCode::GONE
                | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS => Ok(Vec::new()),
                status => Err(IndexError::Status(status.as_u16())),
            }
        };
        let versions = tokio::time::timeout(self.timeout, response).await;
        versions.unwrap_or(Err(IndexError::Silent(self.timeout)))
    }
}

impl PackageIndex for SparseIndex {
    fn versions(&self) -> BoxFuture<'_, Result<Vec<Version>, IndexError>> {
        self.ask().boxed()
    }
}

fn client() -> Result<Client, reqwest::Error> {
    http_client::builder()
        .redirect(Policy::custom(|attempt| {
            if is_allowed(&attempt) { attempt.follow() } else { attempt.stop() }
        }))
        .no_proxy()
        .build()
}

/// Returns true if a redirect stays within the origin of the first request and the limit of
/// redirects.
fn is_allowed(attempt: &Attempt<'_>) -> bool {
    let before = attempt.previous();
    before.len() <= REDIRECTS_MAX
        && before.first().is_some_and(|first| first.origin() == attempt.url().origin())
}

/// Logs the cause, without the URL, and returns the error for callers.
fn logged(error: reqwest::Error, what: IndexError) -> IndexError {
    let what = if error.is_connect() { IndexError::Unreachable } else { what };
    let error = error.without_url();
    let mut cause: &dyn Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    log::warn!("{what}: {cause}");
    what
}

async fn body(mut response: Response) -> Result<Vec<u8>, IndexError> {
    let mut bytes = Vec::new();
    while let Some(chunk) =
        response.chunk().await.map_err(|error| logged(error, IndexError::Broken))?
    {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(IndexError::TooLarge { bytes_max: ANSWER_BYTES_MAX });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Returns the versions that can be installed. Lines of a later format are skipped, as long as one
/// is understood.
pub(super) fn versions_in(bytes: &[u8]) -> Result<Vec<Version>, IndexError> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let read = lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok());
    let own: Vec<_> = read.filter(|line| line.name == PACKAGE).collect();
    if own.is_empty() {
        return Err(IndexError::NoIndex);
    }
    Ok(own.into_iter().filter(|line| !line.yanked).map(|line| line.vers).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_package_follows_from_its_name() {
        let (first, second) = (&PACKAGE[..2], &PACKAGE[2..4]);
        assert_eq!(FILE, format!("{first}/{second}/{PACKAGE}"));
        let address: RegistryAddress = "https://index.example/base".parse().unwrap();
        assert_eq!(address.file().as_str(), format!("https://index.example/base/{FILE}"));
    }

    #[test]
    fn each_line_is_a_version() {
        let line = |version: &str, yanked: bool| {
            format!(r#"{{"name":"greenroom","vers":"{version}","deps":[],"yanked":{yanked}}}"#)
        };
        let (one, two, gone) = (line("0.1.0", false), line("0.2.0", false), line("9.0.0", true));
        let bare = r#"{"name":"greenroom","vers":"0.3.0"}"#;
        let foreign = r#"{"name":"other","vers":"9.9.9","yanked":false}"#;
        let rows: [(String, Result<Vec<&str>, IndexError>); 12] = [
            (format!("{one}\n{two}\n"), Ok(vec!["0.1.0", "0.2.0"])),
            (format!("{one}\r\n{two}"), Ok(vec!["0.1.0", "0.2.0"])),
            (format!("\n\n{one}\n\n"), Ok(vec!["0.1.0"])),
            (format!("{one}\n{gone}"), Ok(vec!["0.1.0"])),
            (gone, Ok(vec![])),
            (bare.to_owned(), Ok(vec!["0.3.0"])),
            (format!("{foreign}\n{one}"), Ok(vec!["0.1.0"])),
            (format!("{one}\n{{\"name\":\"greenroom\",\"vers\":\"next\"}}"), Ok(vec!["0.1.0"])),
            (foreign.to_owned(), Err(IndexError::NoIndex)),
            (String::new(), Err(IndexError::NoIndex)),
            ("<html>sign in</html>".to_owned(), Err(IndexError::NoIndex)),
            (format!("[{one}]"), Err(IndexError::NoIndex)),
        ];
        for (text, expected) in rows {
            let found = versions_in(text.as_bytes());
            let found = found.map(|list| list.iter().map(Version::to_string).collect::<Vec<_>>());
            let expected = expected.map(|list| list.iter().map(|it| (*it).to_owned()).collect());
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(versions_in(b"\xff\xfe"), Err(IndexError::NoIndex));
    }
}
