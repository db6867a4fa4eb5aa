//! Builds the configured models, each after its fallbacks.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use greenroom_actors::ports::model::LanguageModel;

use crate::adapters::mock::MockModel;
#[cfg(feature = "providers")]
use crate::adapters::models::{ProviderModel, RetryingModel};
use crate::config::ModelConfig;
#[cfg(feature = "providers")]
use crate::config::RemoteConfig;

type Models = HashMap<String, Arc<dyn LanguageModel>>;

/// Builds the models; `registered` ones may be fallbacks.
pub(super) fn language_models(
    configured: &BTreeMap<String, ModelConfig>,
    registered: &Models,
) -> io::Result<Models> {
    let mut built = Models::new();
    for id in configured.keys() {
        build(id, configured, registered, &mut built)?;
    }
    Ok(built)
}

/// Builds a model and its fallbacks. The recursion ends because a valid configuration has no
/// cycles of fallbacks.
fn build(
    id: &str,
    configured: &BTreeMap<String, ModelConfig>,
    registered: &Models,
    built: &mut Models,
) -> io::Result<Arc<dyn LanguageModel>> {
    if let Some(model) = registered.get(id).or_else(|| built.get(id)) {
        return Ok(Arc::clone(model));
    }
    let failed = |problem: String| io::Error::other(format!("models.{id}: {problem}"));
    let model: Arc<dyn LanguageModel> = match configured.get(id) {
        None => return Err(failed("is not configured".to_owned())),
        Some(ModelConfig::Mock(mock)) => {
            let model = MockModel::new(mock.clone());
            Arc::new(model.map_err(|problems| failed(problems.0.join("; ")))?)
        }
        #[cfg(feature = "providers")]
        Some(ModelConfig::Remote(remote)) => {
            let RemoteConfig { asked, retry, total, fallback, .. } = &**remote;
            let key = remote.key(|name| std::env::var(name).ok());
            let inner = ProviderModel::new(asked.clone(), key).map_err(failed)?;
            let fallbacks = fallback.iter().map(|id| build(id, configured, registered, built));
            let fallbacks = fallbacks.collect::<io::Result<_>>()?;
            Arc::new(RetryingModel::new(Arc::new(inner), *retry, *total, fallbacks))
        }
    };
    built.insert(id.to_owned(), Arc::clone(&model));
    Ok(model)
}

#[cfg(test)]
#[cfg(feature = "providers")]
mod tests {
    use greenroom_actors::ports::model::{Message, ModelRequest, Role};

    use super::*;
    use crate::config::Config;

    #[tokio::test]
    async fn a_fallback_answers_for_an_unreachable_provider() {
        // no server listens at port 1
        let text = "[models.a]\nprovider = \"openai\"\nmodel = \"gone\"\n\
                    base_url = \"http://127.0.0.1:1\"\nretry = { attempts = 1 }\n\
                    fallback = [\"z\"]\n[models.z]\nprovider = \"rehearsal\"\n";
        let config = Config::parse(text, "c.toml").unwrap();
        let models = language_models(&config.models, &Models::new()).unwrap();
        let request = ModelRequest {
            messages: Arc::new(vec![Message::text(Role::User, "anybody?")]),
            ..ModelRequest::default()
        };
        let answer = models["a"].generate(request).await.unwrap();
        assert_eq!(answer.text, "anybody?");
        assert_eq!((models["a"].name(), models["a"].is_remote()), ("gone", true));
        assert!(!models["z"].is_remote());
    }
}
