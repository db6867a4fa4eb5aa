//! Tokens that end, fail and are refused, against an authorization server over real sockets.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Mutex as Lock;

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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/token", listener.local_addr().unwrap());
        let asked = Arc::<Lock<Vec<String>>>::default();
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for number in 0.. {
                let (mut stream, _) = listener.accept().unwrap();
                let (mut request, mut bytes) = (String::new(), [0; 4096]);
                while !request.contains("resource=") {
                    let count = stream.read(&mut bytes).unwrap();
                    request.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
                }
                noted.lock().unwrap().push(request);
                let (status, body) = answer(number);
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
    let oauth = OAuth {
        client_id: "greenroom".to_owned(),
        client_secret: "SECRET".into(),
        scope: scope.map(str::to_owned),
        token_url: Some(token_url.clone()),
        secret_in: None,
    };
    let url = Url::parse("https://mcp.example/mcp?key=1").unwrap();
    let (name, secret) = (&"s".into(), "s3cret".to_owned());
    let of = Of { name, url: &url, oauth: &oauth, secret, hosts: &[], connect_timeout };
    Tokens::new(of, Sent::of(["s3cret"])).unwrap()
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
    assert_eq!(current(&tokens).await, is(1));
    let asked = authority.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].contains("authorization: Basic Z3JlZW5yb29tOnMzY3JldA=="), "{}", asked[0]);
    let body = "\r\n\r\ngrant_type=client_credentials&scope=a+b\
                &resource=https%3A%2F%2Fmcp.example%2Fmcp";
    assert!(asked[0].ends_with(body), "{}", asked[0]);
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
