//! Tokens that end, fail and are refused, against an authorization server over real sockets.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Mutex as Lock;
use std::sync::mpsc::channel;

use futures_util::{FutureExt as _, poll};
use serde_json::json;
use tokio::time::{advance, pause, resume};

use super::*;

/// An authorization server, with the requests that it got.
struct Authority {
    url: Url,
    asked: Arc<Lock<Vec<String>>>,
}

impl Authority {
    /// Answers the requests for tokens, by their number, with a status and a document.
    fn start(answer: impl Fn(usize) -> (u16, String) + Send + 'static) -> Self {
        Self::reading(move |number, _| answer(number))
    }

    /// Answers requests by their number and text.
    fn reading(answer: impl Fn(usize, &str) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/token", listener.local_addr().unwrap());
        let asked = Arc::<Lock<Vec<String>>>::default();
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for number in 0.. {
                let (mut stream, _) = listener.accept().unwrap();
                let (mut request, mut bytes) = (String::new(), [0; 4096]);
                let is_whole = |request: &str| match request.starts_with("GET ") {
                    true => request.ends_with("\r\n\r\n"),
                    false => request.contains("resource="),
                };
                while !is_whole(&request) {
                    let count = stream.read(&mut bytes).unwrap();
                    request.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
                }
                noted.lock().unwrap().push(request.clone());
                let (status, body) = answer(number, &request);
                let head = format!(
                    "HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
            }
        });
        Self { url: Url::parse(&url).unwrap(), asked }
    }

    fn tokens(&self, scope: Option<&str>) -> Tokens {
        tokens(&self.url, scope, Duration::from_secs(60))
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Returns the tokens of this address.
fn tokens(token_url: &Url, scope: Option<&str>, connect_timeout: Duration) -> Tokens {
    let url = Url::parse("https://mcp.example/mcp?key=1").unwrap();
    tokens_for(&url, (Some(token_url), scope), connect_timeout)
}

/// Returns the tokens for the server at this address, which come from an address or a search.
fn tokens_for(
    url: &Url,
    (token_url, scope): (Option<&Url>, Option<&str>),
    connect_timeout: Duration,
) -> Tokens {
    let oauth = OAuth {
        client_id: "greenroom".to_owned(),
        client_secret: "SECRET".into(),
        scope: scope.map(str::to_owned),
        token_url: token_url.cloned(),
        secret_in: None,
    };
    let (name, secret) = (&"s".into(), "s3cret".to_owned());
    let settings = TokenSettings { name, url, oauth: &oauth, secret, hosts: &[], connect_timeout };
    Tokens::new(settings, Sent::of(["s3cret"])).unwrap()
}

fn token(number: usize) -> (u16, String) {
    (200, format!("{{\"access_token\":\"token-{number}\",\"expires_in\":120}}"))
}

async fn current(tokens: &Tokens) -> Result<String, String> {
    let token = tokens.current().await.map_err(|refusal| refusal.to_string())?;
    Ok(token.map(|token| token.text.clone()).unwrap_or_default())
}

/// Moves the clock while nothing else happens.
async fn later(seconds: u64) {
    pause();
    advance(Duration::from_secs(seconds)).await;
    resume();
}

fn is(number: usize) -> Result<String, String> {
    Ok(format!("token-{number}"))
}

/// Waits for the end of a fetch that is under way.
async fn fetched(tokens: &Tokens) {
    drop(tokens.0.held.lock().await);
}

#[tokio::test]
async fn a_token_is_fetched_once_and_again_before_its_end() {
    let authority = Authority::start(token);
    let tokens = authority.tokens(Some("a b"));
    let (first, second) = tokio::join!(current(&tokens), current(&tokens));
    assert_eq!((first, second), (is(0), is(0)));
    later(89).await;
    assert_eq!(current(&tokens).await, is(0));
    assert_eq!(authority.asked().len(), 1);
    later(2).await;
    assert_eq!(current(&tokens).await, is(0), "it is still good");
    fetched(&tokens).await;
    assert_eq!(current(&tokens).await, is(1));
    let asked = authority.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].contains("authorization: Basic Z3JlZW5yb29tOnMzY3JldA=="), "{}", asked[0]);
    let body = "\r\n\r\ngrant_type=client_credentials&scope=a+b\
                &resource=https%3A%2F%2Fmcp.example%2Fmcp";
    assert!(asked[0].ends_with(body), "{}", asked[0]);
}

#[tokio::test]
async fn requests_wait_for_no_token_while_theirs_is_good() {
    let (answer, answered) = channel::<()>();
    let authority = Authority::start(move |number| {
        if number > 0 {
            answered.recv().unwrap();
        }
        token(number)
    });
    let tokens = authority.tokens(None);
    assert_eq!(current(&tokens).await, is(0));
    later(91).await;
    for _ in 0..3 {
        assert_eq!(current(&tokens).now_or_never(), Some(is(0)));
    }
    answer.send(()).unwrap();
    fetched(&tokens).await;
    assert_eq!(current(&tokens).now_or_never(), Some(is(1)));
    assert_eq!(authority.asked().len(), 2, "one at a time");
    // four seconds before its end another one is fetched, which ends after it
    later(116).await;
    assert_eq!(current(&tokens).now_or_never(), Some(is(1)));
    later(4).await;
    let mut waiting = Box::pin(current(&tokens));
    assert!(poll!(&mut waiting).is_pending());
    answer.send(()).unwrap();
    assert_eq!(waiting.await, is(2));
    assert_eq!(authority.asked().len(), 3);
}

#[tokio::test]
async fn a_token_is_used_to_its_end_while_there_is_no_other() {
    let refused = |number| if number == 0 { token(0) } else { (503, String::new()) };
    let authority = Authority::start(refused);
    let tokens = authority.tokens(None);
    for (seconds, expected, asked) in [(0, is(0), 1), (91, is(0), 2), (9, is(0), 2), (2, is(0), 3)]
    {
        later(seconds).await;
        assert_eq!(current(&tokens).await, expected);
        fetched(&tokens).await;
        assert_eq!(authority.asked().len(), asked);
    }
    later(20).await;
    let why = "it gets no token: 127.0.0.1: it answered with status 503";
    assert_eq!(current(&tokens).await, Err(why.to_owned()));
}

#[tokio::test]
async fn a_failure_is_that_of_all_requests_of_a_second() {
    let refusal = r#"{"error":"invalid_client","error_description":"not s3cret"}"#;
    let authority = Authority::start(|_| (401, refusal.to_owned()));
    let tokens = authority.tokens(None);
    let why = "it gets no token: 127.0.0.1: it answered invalid_client (status 401): not [secret]";
    for (seconds, asked) in [(0, 1), (0, 1), (2, 2)] {
        later(seconds).await;
        assert_eq!(current(&tokens).await, Err(why.to_owned()));
        assert_eq!(authority.asked().len(), asked);
    }
}

#[tokio::test]
async fn an_address_that_does_not_answer_costs_less_than_the_time_of_the_connection() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Url::parse(&format!("http://{}/", silent.local_addr().unwrap())).unwrap();
    let tokens = tokens(&url, None, Duration::from_millis(50));
    let why = "it gets no token: no answer within 45ms";
    assert_eq!(current(&tokens).await, Err(why.to_owned()));
}

#[tokio::test]
async fn a_refused_token_is_fetched_again_once_for_all_who_used_it() {
    let authority = Authority::start(token);
    let tokens = authority.tokens(None);
    let used = tokens.current().await.unwrap();
    let header = "Bearer error=\"invalid_token\", scope=\"x\"";
    for _ in 0..3 {
        assert_eq!(tokens.renewed(used.as_ref(), header).await.unwrap().text, "token-1");
    }
    assert_eq!(authority.asked().len(), 2);
    assert!(authority.asked()[1].contains("&scope=x&"), "{:?}", authority.asked());
    assert_eq!(
        tokens.0.sent.known().removed_from("token-0 token-1".to_owned()),
        "[secret] [secret]"
    );
}

#[tokio::test]
async fn a_wider_scope_is_asked_for_unless_it_is_configured() {
    let authority = Authority::start(token);
    let header = "Bearer error=\"insufficient_scope\", scope=\"x y\"";
    let tokens = authority.tokens(None);
    let used = tokens.current().await.unwrap();
    assert!(tokens.widened(used.as_ref(), "").await.unwrap().is_none());
    let wider = tokens.widened(used.as_ref(), header).await.unwrap();
    assert_eq!(tokens.widened(used.as_ref(), header).await.unwrap().unwrap().text, "token-1");
    assert!(authority.asked()[1].contains("&scope=x+y&"), "{:?}", authority.asked());
    let refusal = tokens.widened(wider.as_ref(), header).await.unwrap_err();
    assert_eq!(refusal.to_string(), "it refuses a token with the scope `x y` (status 403)");
    assert_eq!(refusal.status, Some(403));
    let tokens = authority.tokens(Some("x"));
    let used = tokens.current().await.unwrap();
    let refusal = tokens.widened(used.as_ref(), header).await.unwrap_err();
    let why = "it wants a token with the scope `x y` (status 403); see `oauth.scope`";
    assert_eq!(refusal.to_string(), why);
}

#[tokio::test]
async fn a_scope_that_gets_no_token_is_not_asked_for_again() {
    let authority = Authority::start(|number| match number {
        1 => (400, r#"{"error":"invalid_scope"}"#.to_owned()),
        _ => token(number),
    });
    let header = "Bearer error=\"insufficient_scope\", scope=\"x\"";
    let tokens = authority.tokens(None);
    let used = tokens.current().await.unwrap();
    let refusal = tokens.widened(used.as_ref(), header).await.unwrap_err();
    assert!(refusal.to_string().contains("invalid_scope"), "{refusal}");
    assert_eq!(current(&tokens).await, is(0));
    later(121).await;
    assert_eq!(current(&tokens).await, is(2));
    let scoped: Vec<_> = authority.asked().iter().map(|asked| asked.contains("scope=")).collect();
    assert_eq!(scoped, [false, true, false]);
}

#[tokio::test]
async fn after_a_new_token_was_refused_none_is_fetched_for_a_while() {
    let authority = Authority::start(token);
    let tokens = authority.tokens(None);
    let first = tokens.current().await.unwrap();
    let second = tokens.renewed(first.as_ref(), "").await.unwrap();
    // the refusal of an older one says nothing about it
    tokens.refused_again(first.as_ref());
    assert!(tokens.0.newest().refused.is_none());
    assert_eq!(tokens.refused_again(Some(&second)), Refusal::of_new_token());
    for (seconds, left) in [(0, "30 s"), (20, "10 s")] {
        later(seconds).await;
        let refusal = tokens.renewed(Some(&second), "").now_or_never().unwrap().unwrap_err();
        let why = format!(
            "it refuses the newest token (status 401), and none is fetched in its place for {left}: see \
             which audience and scope the authorization server gives to this client"
        );
        assert_eq!((refusal.to_string(), refusal.status), (why, Some(401)));
        assert_eq!(current(&tokens).await, is(1), "requests have it on");
    }
    assert_eq!(authority.asked().len(), 2);
    later(10).await;
    assert_eq!(tokens.renewed(Some(&second), "").await.unwrap().text, "token-2");
    assert_eq!(authority.asked().len(), 3);
}

#[tokio::test]
async fn metadata_that_a_server_has_named_is_not_forgotten_after_a_failure() {
    let authority = Authority::reading(|number, request| {
        let host = request.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        let origin = format!("http://{host}");
        let document = match request.split(' ').nth(1).unwrap() {
            "/meta" if number == 0 => return (503, String::new()),
            "/meta" => {
                json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] })
            }
            "/.well-known/oauth-authorization-server" => {
                json!({ "issuer": origin, "token_endpoint": format!("{origin}/token") })
            }
            "/token" => return token(number),
            _ => return (404, String::new()),
        };
        (200, document.to_string())
    });
    let server = authority.url.join("/mcp").unwrap();
    let tokens = tokens_for(&server, (None, None), Duration::from_secs(60));
    assert_eq!(current(&tokens).await, Ok(String::new()), "it is asked without one first");
    let refusal = tokens.renewed(None, "Bearer resource_metadata=\"/meta\"").await.unwrap_err();
    assert!(refusal.to_string().ends_with("it answered with status 503"), "{refusal}");
    later(2).await;
    assert_eq!(tokens.renewed(None, "Bearer").await.unwrap().text, "token-3");
    let paths: Vec<_> = authority
        .asked()
        .iter()
        .map(|request| request.split(' ').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(paths, ["/meta", "/meta", "/.well-known/oauth-authorization-server", "/token"]);
}
