//! The configured models, built: each after those that take its place.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use greenroom_actors::ports::model::LanguageModel;

use crate::adapters::models::{ProviderModel, SteadyModel};
use crate::adapters::rehearsal::RehearsalModel;
use crate::config::{ModelConfig, RemoteConfig};

type Models = HashMap<String, Arc<dyn LanguageModel>>;

/// Builds the models; `registered` ones may stand in for them.
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

/// Ends: the configuration has no circles among stand-ins.
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
        Some(ModelConfig::Rehearsal(rehearsal)) => {
            let model = RehearsalModel::new(rehearsal.clone());
            Arc::new(model.map_err(|problems| failed(problems.join("; ")))?)
        }
        Some(ModelConfig::Remote(remote)) => {
            let RemoteConfig { asked, retry, total, fallback, .. } = &**remote;
            let key = remote.key(|name| std::env::var(name).ok());
            let inner = ProviderModel::new(asked.clone(), key).map_err(failed)?;
            let stand_ins = fallback.iter().map(|id| build(id, configured, registered, built));
            let stand_ins = stand_ins.collect::<io::Result<_>>()?;
            Arc::new(SteadyModel::new(Arc::new(inner), *retry, *total, stand_ins))
        }
    };
    built.insert(id.to_owned(), Arc::clone(&model));
    Ok(model)
}
