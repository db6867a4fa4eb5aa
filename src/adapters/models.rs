//! Models of providers, behind the runtime's port: three wire formats over one HTTP client.
//!
//! A [`ProviderModel`] asks once, always for a stream, also where the answer is wanted whole: so
//! silence is noticed after seconds and nothing on the way ends a connection that seems idle. A
//! [`SteadyModel`] around it asks again and asks others.

mod answer;
mod anthropic;
mod exchange;
mod failure;
mod fields;
mod files;
mod format;
mod frames;
mod gemini;
mod key;
mod merge;
mod names;
mod openai;
mod prompt;
mod provider;
mod retry;
mod schema;
mod steady;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use greenroom_actors::domain::trace::Trace;
use greenroom_actors::ports::model::{
    LanguageModel, ModelAnswer, ModelError, ModelEvent, ModelRequest, Served,
};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

pub use self::key::ApiKey;
pub use self::provider::{Objects, PROVIDERS, Provider};
pub use self::retry::RetryPolicy;
pub use self::steady::SteadyModel;

use self::answer::Answer;
use self::exchange::{Exchange, collected};
use self::failure::Failures;
use self::merge::merge_options;
use self::names::ToolNames;
use self::prompt::Prompt;
use crate::http_client;

/// Where OpenAI itself is. Its wire format is spoken by many, who lag behind it.
const OPENAI_HOST: &str = "api.openai.com";

/// A model of a provider, and how it is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderConfig {
    /// Who serves it, or whose wire format it is served in.
    pub provider: &'static Provider,
    /// Where, when it is not where the provider is; `http` or `https`.
    pub base_url: Option<Url>,
    /// The provider's name of the model.
    pub model: String,
    /// Whether answers are asked for as streams.
    pub stream: bool,
    /// How objects are asked for.
    pub objects: Objects,
    /// How long the provider may be silent, before its answer and in it.
    pub first_token: Duration,
    /// Options that the model refuses: they are not sent.
    pub omit: Vec<Omitted>,
}

/// An option that is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omitted {
    Temperature,
    MaxOutputTokens,
    TopP,
    FrequencyPenalty,
    PresencePenalty,
    Seed,
    StopSequences,
    ProviderOptions,
}

impl Omitted {
    /// All options, as the configuration names them.
    pub const NAMES: [(&str, Self); 8] = [
        ("temperature", Self::Temperature),
        ("max_output_tokens", Self::MaxOutputTokens),
        ("top_p", Self::TopP),
        ("frequency_penalty", Self::FrequencyPenalty),
        ("presence_penalty", Self::PresencePenalty),
        ("seed", Self::Seed),
        ("stop_sequences", Self::StopSequences),
        ("provider_options", Self::ProviderOptions),
    ];
}

/// A model that is asked over HTTP, once. Clones share the connections.
#[derive(Debug, Clone)]
pub struct ProviderModel {
    asked: Arc<Asked>,
}

#[derive(Debug)]
struct Asked {
    config: ProviderConfig,
    url: Url,
    is_original: bool,
    failures: Failures,
    client: Client,
    /// Who is asked.
    served: Served,
}

impl ProviderModel {
    /// Connects nowhere yet. Fails when the address is none for HTTP or the client cannot be made.
    pub fn new(config: ProviderConfig, key: Option<ApiKey>) -> Result<Self, String> {
        let own = Url::parse(config.provider.base_url).map_err(|error| error.to_string())?;
        let base = config.base_url.as_ref().unwrap_or(&own);
        let is_original = base.host_str() == Some(OPENAI_HOST);
        let url = config.provider.format.url(base, &config.model, config.stream);
        let mut client = http_client::builder()
            // a redirect would carry the prompt, and with some formats the key, elsewhere
            .redirect(Policy::none())
            .connect_timeout(config.first_token);
        if is_loopback(base) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| error.to_string())?;
        let failures = Failures { provider: config.provider.name, key };
        let served = Served {
            provider: Some(Arc::from(config.provider.name)),
            server: base.host_str().map(Arc::from),
            port: base.port(),
            ..Served::of(&config.model)
        };
        Ok(Self { asked: Arc::new(Asked { config, url, is_original, failures, client, served }) })
    }
}

/// Whether an address is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
        None => false,
    }
}

impl Asked {
    /// Makes the request; nothing is sent before the exchange is driven.
    fn exchange(&self, request: &ModelRequest) -> Result<Exchange, ModelError> {
        let Self { config, url, failures, client, served, .. } = self;
        let format = config.provider.format;
        let names = Arc::new(ToolNames::new(&request.tools, &request.messages));
        let prompt = Prompt::new(config, self.is_original, request, &names);
        let mut body = format.body(&prompt)?;
        if let Some(options) = &prompt.options.provider_options {
            let providers = PROVIDERS.map(|provider| provider.name);
            merge_options(&mut body, options, config.provider.name, &providers);
        }
        let reader = format.reader(&prompt);
        let mut call = client.post(url.clone()).json(&body);
        for (name, value) in request.trace.iter().flat_map(Trace::headers) {
            call = call.header(name, value);
        }
        let call = format.authorized(call, failures.key.as_ref());
        let messages = Arc::clone(&request.messages);
        let answer = Answer::new(Arc::clone(&names), messages, served.clone());
        Ok(Exchange::new(call, reader, answer, failures.clone(), config.first_token))
    }
}

impl LanguageModel for ProviderModel {
    fn name(&self) -> &str {
        &self.asked.config.model
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn expected(&self) -> Served {
        self.asked.served.clone()
    }

    fn generate(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        collected(self.stream(request)).boxed()
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        match self.asked.exchange(&request) {
            Ok(exchange) => exchange.events(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }
}
