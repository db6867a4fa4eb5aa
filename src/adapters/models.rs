//! Models of providers, behind the runtime's port: three wire formats over one HTTP client.
//!
//! A [`ProviderModel`] sends one request, for a stream also if the whole answer is asked for: so
//! silence is noticed after seconds, and no proxy closes a connection that seems idle. A
//! [`RetryingModel`] around it retries and falls back to other models.

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
mod result_files;
mod retry;
mod retrying;
mod schema;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use greenroom_actors::domain::trace::Trace;
use greenroom_actors::ports::model::{LanguageModel, ModelError, ModelEvent, ModelRequest, Served};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

pub use self::key::ApiKey;
pub use self::provider::{Objects, PROVIDERS, Provider};
pub use self::retry::RetryPolicy;
pub use self::retrying::RetryingModel;

use self::answer::Answer;
use self::exchange::{Exchange, State};
use self::failure::Failures;
use self::merge::merge_options;
use self::names::ToolNames;
use self::prompt::Prompt;
use crate::http_client;
use crate::loopback::is_loopback;

/// Host of OpenAI itself; its regions have it behind their names, as `eu.`. Other servers of its wire
/// format lag behind it.
const OPENAI_HOST: &str = "api.openai.com";

/// Configuration of a provider's model.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderConfig {
    /// Provider that serves it, or whose wire format its server uses.
    pub provider: &'static Provider,
    /// URL of another server than the provider's; `http` or `https`.
    pub base_url: Option<Url>,
    /// The provider's name of the model.
    pub model: String,
    /// True if answers are requested as streams.
    pub stream: bool,
    /// Mode in which objects are requested.
    pub objects: Objects,
    /// Longest silence of the provider, before its answer and during it.
    pub first_token: Duration,
    /// Options that are not sent, because the model refuses them.
    pub omit: Vec<Omitted>,
}

impl ProviderConfig {
    /// Returns the URL of the server, which ends with a slash.
    pub(crate) fn url(&self) -> Result<Url, String> {
        let own = || Url::parse(self.provider.base_url).map_err(|error| error.to_string());
        self.base_url.clone().map_or_else(own, Ok)
    }
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
    ParallelToolCalls,
    ProviderOptions,
}

impl Omitted {
    /// All options, by their names in the configuration.
    pub const NAMES: [(&str, Self); 9] = [
        ("temperature", Self::Temperature),
        ("max_output_tokens", Self::MaxOutputTokens),
        ("top_p", Self::TopP),
        ("frequency_penalty", Self::FrequencyPenalty),
        ("presence_penalty", Self::PresencePenalty),
        ("seed", Self::Seed),
        ("stop_sequences", Self::StopSequences),
        ("parallel_tool_calls", Self::ParallelToolCalls),
        ("provider_options", Self::ProviderOptions),
    ];
}

/// A model over HTTP, without retries. Clones share the connections.
#[derive(Debug, Clone)]
pub struct ProviderModel {
    endpoint: Arc<Endpoint>,
}

#[derive(Debug)]
struct Endpoint {
    config: ProviderConfig,
    url: Url,
    is_openai: bool,
    failures: Failures,
    client: Client,
    /// The model and server that this endpoint names, for records.
    served: Served,
}

fn is_openai(host: &str) -> bool {
    let region = host.strip_suffix(OPENAI_HOST);
    region.is_some_and(|region| region.is_empty() || region.ends_with('.'))
}

impl ProviderModel {
    /// Opens no connection yet. Fails if the URL is not for HTTP or the client cannot be made.
    pub fn new(config: ProviderConfig, key: Option<ApiKey>) -> Result<Self, String> {
        let base = &config.url()?;
        let is_openai = base.host_str().is_some_and(is_openai);
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
        let endpoint = Endpoint { config, url, is_openai, failures, client, served };
        Ok(Self { endpoint: Arc::new(endpoint) })
    }
}

impl Endpoint {
    /// Prepares the request; nothing is sent before the exchange is polled.
    fn exchange(&self, request: &ModelRequest) -> Result<Exchange, ModelError> {
        let Self { config, url, failures, client, served, .. } = self;
        let format = config.provider.format;
        let names = Arc::new(ToolNames::new(&request.tools, &request.messages));
        let prompt = Prompt::new(config, self.is_openai, request, &names);
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
        let state = State::Unsent(Box::new(call));
        Ok(Exchange::new(state, reader, answer, failures.clone(), config.first_token))
    }
}

impl LanguageModel for ProviderModel {
    fn name(&self) -> &str {
        &self.endpoint.config.model
    }

    fn is_remote(&self) -> bool {
        true
    }

    /// Each format shows what it has a place for.
    fn reads_content(&self) -> bool {
        true
    }

    fn expected(&self) -> Served {
        self.endpoint.served.clone()
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        match self.endpoint.exchange(&request) {
            Ok(exchange) => exchange.events(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }
}
