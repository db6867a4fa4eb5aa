//! Models of providers against scripted servers over real sockets: requests on the wire, and
//! behaviour when servers fail.

mod failures;
mod objects;
mod requests;
mod streams;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use greenroom::adapters::models::{ApiKey, Provider, ProviderConfig, ProviderModel};
use greenroom_actors::ports::model::{LanguageModel as _, Message, ModelRequest, Role};
use reqwest::Url;
use serde_json::{Value, json};
use support::provider as scripted;

/// A key that only providers may receive.
pub(crate) const CANARY: &str = "canary-key-0123456789";

/// The three wire formats.
pub(crate) const FORMATS: [&str; 3] = ["openai", "anthropic", "gemini"];

pub(crate) fn config(provider: &str, server: &scripted::Provider) -> ProviderConfig {
    let provider = Provider::named(provider).unwrap();
    ProviderConfig {
        provider,
        base_url: Some(Url::parse(&server.base_url()).unwrap()),
        model: "m-1".to_owned(),
        stream: true,
        objects: provider.objects,
        first_token: Duration::from_secs(20),
        omit: Vec::new(),
    }
}

pub(crate) fn model(config: ProviderConfig) -> ProviderModel {
    ProviderModel::new(config, ApiKey::new(CANARY)).unwrap()
}

pub(crate) fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages: Arc::new(messages), ..ModelRequest::default() }
}

pub(crate) fn asking(text: &str) -> ModelRequest {
    request(vec![Message::text(Role::User, text)])
}

/// Sends a request; returns what the provider received.
pub(crate) async fn seen(provider: &str, request: ModelRequest) -> scripted::Asked {
    seen_with(provider, request, |_| {}).await
}

/// Sends a request with another configuration.
pub(crate) async fn seen_with(
    provider: &str,
    request: ModelRequest,
    change: impl FnOnce(&mut ProviderConfig),
) -> scripted::Asked {
    let server = scripted::Provider::start([says(provider, "{}")]);
    let mut config = config(provider, &server);
    change(&mut config);
    model(config).generate(request).await.unwrap();
    server.asked().remove(0)
}

/// Waits until clients have left so many connections; returns how long that took.
pub(crate) async fn left(server: &scripted::Provider, count: usize) -> Duration {
    let server = server.clone();
    // the client's side of the connection lives on this thread
    tokio::task::spawn_blocking(move || server.wait_until_left(count)).await.unwrap()
}

/// Waits until so many requests have arrived.
pub(crate) async fn asked(server: &scripted::Provider, count: usize) {
    let server = server.clone();
    tokio::task::spawn_blocking(move || server.wait_until_asked(count)).await.unwrap();
}

/// Returns the frames of a provider's answer with a text.
pub(crate) fn frames(provider: &str, text: &str) -> Vec<Value> {
    match provider {
        "openai" | "deepseek" | "groq" | "cohere" => vec![
            json!({ "choices": [{ "delta": { "content": text } }] }),
            json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }),
        ],
        "anthropic" => vec![
            json!({ "type": "content_block_start", "index": 0,
                    "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "content_block_delta", "index": 0,
                    "delta": { "type": "text_delta", "text": text } }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
            json!({ "type": "message_stop" }),
        ],
        _ => vec![json!({ "candidates": [{ "content": { "parts": [{ "text": text }] },
                                           "finishReason": "STOP" }] })],
    }
}

pub(crate) fn event(frame: &Value) -> Vec<u8> {
    format!("data: {frame}\n\n").into_bytes()
}

/// Returns a stream with a text.
pub(crate) fn says(provider: &str, text: &str) -> Vec<scripted::Deed> {
    let pieces = frames(provider, text);
    let pieces = pieces.iter().map(|frame| scripted::piece(&event(frame)));
    [scripted::stream_head()].into_iter().chain(pieces).chain([scripted::stream_end()]).collect()
}
