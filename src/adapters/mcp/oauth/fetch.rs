//! Requests for metadata and tokens: to few addresses, without redirects, with small answers.

use std::sync::Arc;

use greenroom_actors::domain::call::HostChoice;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder};
use url::Url;

use crate::adapters::mcp::reasons::{causes, why_not_sent};
use crate::adapters::tools::OutgoingHost;
use crate::adapters::tools::outgoing::{HostRefused, Outgoing};
use crate::loopback::is_loopback;

/// Largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Largest address that metadata names, in bytes.
const ADDRESS_BYTES_MAX: usize = 2048;

/// An answer of any status.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// A client for metadata and tokens of one server. Clones share connections.
#[derive(Debug, Clone)]
pub(super) struct Fetcher {
    outgoing: Outgoing,
    /// Addresses of the configuration; others must be public, or of hosts that the configuration names.
    configured: Arc<[Url]>,
}

impl Fetcher {
    pub(super) fn new(hosts: &[OutgoingHost], configured: &[Url]) -> Result<Self, String> {
        let outgoing =
            Outgoing::new(hosts).map_err(|_| "this server cannot make HTTP calls".to_owned())?;
        Ok(Self { outgoing, configured: Arc::from(configured) })
    }

    /// Fetches a document.
    pub(super) async fn get(&self, url: &Url) -> Result<Answer, String> {
        self.send(Method::GET, url, |request| request).await
    }

    /// Posts a form.
    pub(super) async fn post(
        &self,
        url: &Url,
        authorization: Option<HeaderValue>,
        form: String,
    ) -> Result<Answer, String> {
        let fill = |request: RequestBuilder| {
            let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            let request =
                authorization.iter().fold(request, |it, value| it.header(AUTHORIZATION, value));
            request.body(form)
        };
        self.send(Method::POST, url, fill).await
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        fill: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Answer, String> {
        let is_configured = self.configured.iter().any(|known| known.origin() == url.origin());
        let choice = if is_configured { HostChoice::Operator } else { HostChoice::Data };
        let client = self.outgoing.client(url, choice).map_err(|refused| not_allowed(&refused))?;
        let request = client.request(method, url.clone()).header(ACCEPT, "application/json");
        let mut answer = client.send(fill(request)).await.map_err(|error| why(&error))?;
        let status = answer.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| why(&error))? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(format!("its answer is larger than {ANSWER_BYTES_MAX} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, body })
    }
}

/// Explains a request without an answer. The text has no address.
fn why(error: &reqwest::Error) -> String {
    let refused = causes(error).find_map(|cause| cause.downcast_ref::<HostRefused>());
    refused.map_or_else(|| why_not_sent(error), not_allowed)
}

fn not_allowed(refused: &HostRefused) -> String {
    format!(
        "{refused}: it is not a public address, and metadata named it; set `oauth.token_url`, or add it \
         to `limits.outgoing_hosts`"
    )
}

/// Reads an address that metadata names. The error says what is wrong with it.
pub(super) fn address(text: &str) -> Result<Url, &'static str> {
    let url = Some(text).filter(|text| text.len() <= ADDRESS_BYTES_MAX);
    let url = url.and_then(|text| Url::parse(text).ok()).filter(Url::has_host);
    let Some(url) = url else { return Err("is not a URL") };
    match url.scheme() {
        _ if !url.username().is_empty() || url.password().is_some() => Err("has a user name"),
        _ if url.fragment().is_some() => Err("has a fragment"),
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        _ => Err("does not begin with https://"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn addresses_of_metadata_are_safe() {
        let long = format!("https://a.example/{}", "x".repeat(ADDRESS_BYTES_MAX));
        for (text, expected) in [
            ("https://a.example/token?x=1", None),
            ("http://127.0.0.1:1/token", None),
            ("http://localhost/token", None),
            ("http://a.example/token", Some("does not begin with https://")),
            ("http://localhost.a.example/token", Some("does not begin with https://")),
            ("ftp://a.example/", Some("does not begin with https://")),
            ("https://u@a.example/", Some("has a user name")),
            ("https://a.example/#x", Some("has a fragment")),
            ("/token", Some("is not a URL")),
            ("data:a", Some("is not a URL")),
            (&long, Some("is not a URL")),
        ] {
            assert_eq!(address(text).err(), expected, "{text}");
        }
    }

    /// Returns the end of a request for a body of this size.
    async fn fetched(bytes: usize, hosts: &[&str]) -> Result<usize, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
            // the client may leave early
            let _ = stream.write_all(&[head.as_bytes(), &vec![b'x'; bytes]].concat());
        });
        let hosts: Vec<_> = hosts.iter().map(|host| host.parse().unwrap()).collect();
        let fetcher = Fetcher::new(&hosts, &[]).unwrap();
        fetcher.get(&Url::parse(&url).unwrap()).await.map(|answer| answer.body.len())
    }

    #[tokio::test]
    async fn answers_are_bounded_and_hosts_are_chosen_by_the_operator() {
        assert_eq!(fetched(ANSWER_BYTES_MAX, &["localhost"]).await, Ok(ANSWER_BYTES_MAX));
        let refused = fetched(ANSWER_BYTES_MAX + 1, &["localhost"]).await.unwrap_err();
        assert_eq!(refused, "its answer is larger than 65536 bytes");
        let refused = fetched(1, &[]).await.unwrap_err();
        assert!(refused.starts_with("calls to localhost are not allowed"), "{refused}");
    }
}
