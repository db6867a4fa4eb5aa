//! Refusals of providers, and secrets in them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom::adapters::models::{RetryPolicy, RetryingModel};
use greenroom_actors::ports::model::{LanguageModel, ModelErrorKind};

use super::{CANARY, FORMATS, asking, config, event, left, model, says};
use support::provider::{Deed, Provider, piece, stream_head, whole};

#[tokio::test]
async fn errors_contain_the_message_of_the_provider() {
    use ModelErrorKind::{Auth, Other, RateLimited, Unavailable};
    let rows = [
        (400, "bad seed", Other),
        (401, "wrong key", Auth),
        (429, "slow down", RateLimited),
        (500, "it broke", Unavailable),
    ];
    for provider in FORMATS {
        for (status, said, kind) in rows {
            let body = serde_json::json!({ "error": { "message": said } }).to_string();
            let server = Provider::start([whole(status, &[("retry-after", "7")], &body)]);
            let answer = model(config(provider, &server)).generate(asking("hi")).await;
            let error = answer.unwrap_err();
            assert_eq!(error.message, format!("{provider} answered {status}: {said}"));
            assert_eq!((error.kind, error.retry_after), (kind, Some(Duration::from_secs(7))));
        }
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Provider::start([says("openai", "caught")]);
    let to = [("location", &*elsewhere.base_url())];
    let server = Provider::start([whole(307, &to, "")]);
    let error = model(config("openai", &server)).generate(asking("hi")).await.unwrap_err();
    assert!(error.message.starts_with("openai answered 307"), "{error}");
    assert_eq!(elsewhere.asked().len(), 0);
}

#[tokio::test]
async fn an_unreachable_provider_is_reported_without_its_address() {
    let mut config = config("openai", &Provider::start([]));
    // port 1 is closed
    config.base_url = Some(reqwest::Url::parse("http://127.0.0.1:1/v1/").unwrap());
    let error = model(config).generate(asking("hi")).await.unwrap_err();
    assert_eq!(
        (error.kind, &*error.message),
        (ModelErrorKind::Unavailable, "openai cannot be reached")
    );
}

#[tokio::test]
async fn a_provider_that_never_answers_is_disconnected() {
    let silent = [vec![Deed::Hold], vec![stream_head(), Deed::Hold]];
    let server = Provider::start(silent);
    let mut config = config("openai", &server);
    config.first_token = Duration::from_millis(300);
    let model = model(config);
    for count in 1..=2 {
        let error = model.generate(asking("hi")).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Timeout);
        assert_eq!(
            error.message,
            "openai did not begin to answer within 300ms (timeouts.first_token)"
        );
        left(&server, count).await;
    }
}

#[tokio::test]
async fn a_failed_request_is_retried_until_the_provider_recovers() {
    let busy = || whole(429, &[("retry-after-ms", "1")], "");
    let server = Provider::start([busy(), whole(503, &[], ""), says("openai", "at last")]);
    let policy = RetryPolicy { delay: Duration::from_millis(1), ..RetryPolicy::default() };
    let inner = Arc::new(model(config("openai", &server)));
    let model = RetryingModel::new(inner, policy, Duration::from_secs(60), Vec::new());
    assert_eq!(model.generate(asking("hi")).await.unwrap().text, "at last");
    assert_eq!(server.asked().len(), 3);
}

/// Collects all log records.
struct Listener(Mutex<String>);

impl log::Log for Listener {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = format!("{} {}\n", record.target(), record.args());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(&line);
    }

    fn flush(&self) {}
}

static LISTENER: Listener = Listener(Mutex::new(String::new()));

#[tokio::test]
async fn the_key_is_seen_by_the_provider_alone() {
    log::set_logger(&LISTENER).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let echo = serde_json::json!({ "error": { "message": format!(
        "no: {CANARY} (Authorization: Bearer {CANARY}, https://x.example/?key={CANARY})") } });
    for provider in FORMATS {
        let echoed = echo.to_string();
        let headers = [("x-echo", CANARY), ("retry-after", CANARY)];
        let server = Provider::start([
            whole(401, &headers, &echoed),
            whole(500, &headers, &format!("plain {CANARY}")),
            whole(404, &headers, &format!("<html>{CANARY}</html>")),
            vec![stream_head(), piece(&event(&echo))],
            vec![stream_head(), piece(format!("{CANARY}\n").as_bytes())],
            vec![stream_head(), piece(b"data: "), Deed::Send(CANARY.as_bytes().to_vec())],
        ]);
        let model = model(config(provider, &server));
        for _ in 0..6 {
            let error = model.generate(asking("hi")).await.unwrap_err();
            assert!(!format!("{error} {error:?}").contains("canary"), "{provider}: {error}");
        }
        assert_eq!(server.asked().len(), 6);
        let shown = format!("{model:?}");
        assert!(!shown.contains("canary"), "{shown}");
    }
    let logged = LISTENER.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(logged.contains("greenroom"), "{logged}");
    assert!(!logged.contains("canary"), "{logged}");
}
