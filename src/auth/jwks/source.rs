//! The server of a key set: one address, without redirects, and one small answer.

use std::time::Duration;

use greenroom_actors::causes::with_causes;
use jsonwebtoken::Algorithm;
use reqwest::header::{ACCEPT, CACHE_CONTROL, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};

use super::set::KeySet;
use crate::http_client;
use crate::loopback::is_loopback;

/// Time limit of a fetch, from the name lookup to the last byte.
pub(super) const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Bounds of the time that keys are fresh; `max-age` of the answer chooses within them.
const FRESH_MAX: Duration = Duration::from_secs(10 * 60);
const FRESH_MIN: Duration = Duration::from_secs(60);

pub(super) struct Source {
    url: Url,
    client: Client,
}

impl Source {
    pub(super) fn new(url: Url) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("the address of the key set must begin with http:// or https://".to_owned());
        }
        let mut client = http_client::builder()
            // only the address that the operator configured
            .redirect(Policy::none())
            .timeout(FETCH_TIMEOUT)
            // fetches are minutes apart and run on different threads
            .pool_max_idle_per_host(0);
        if is_loopback(&url) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| error.to_string())?;
        Ok(Self { url, client })
    }

    /// Returns the host, for the log; the rest of the address may be confidential.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Fetches the set. Returns it with the time that it is fresh.
    pub(super) async fn fetch(
        &self,
        algorithms: &[Algorithm],
    ) -> Result<(KeySet, Duration), String> {
        let described = |error: reqwest::Error| with_causes(&error.without_url());
        let request = self.client.get(self.url.clone()).header(ACCEPT, "application/json");
        let mut answer = request.send().await.map_err(described)?;
        if answer.status() != StatusCode::OK {
            return Err(format!("HTTP {}", answer.status().as_u16()));
        }
        let fresh_for = fresh_for(answer.headers());
        let mut document = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(described)? {
            if document.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(format!("the answer is larger than {ANSWER_BYTES_MAX} bytes"));
            }
            document.extend_from_slice(&chunk);
        }
        Ok((KeySet::read(&document, algorithms)?, fresh_for))
    }
}

fn fresh_for(headers: &HeaderMap) -> Duration {
    let directives = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let mut directives = directives.unwrap_or_default().split(',');
    let age = directives.find_map(|it| it.trim().strip_prefix("max-age=")?.parse().ok());
    age.map_or(FRESH_MAX, Duration::from_secs).clamp(FRESH_MIN, FRESH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fresh_for_ten_minutes_or_less() {
        let rows = [
            (None, 600),
            (Some("max-age=120"), 120),
            (Some("public, max-age=300, must-revalidate"), 300),
            (Some("max-age=86400"), 600),
            (Some("max-age=0"), 60),
            (Some("no-store"), 600),
            (Some("max-age=-1"), 600),
            (Some("max-age=99999999999999999999"), 600),
        ];
        for (value, seconds) in rows {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(CACHE_CONTROL, value.parse().unwrap());
            }
            assert_eq!(fresh_for(&headers).as_secs(), seconds, "{value:?}");
        }
    }
}
