//! The usable keys of a set.

use std::sync::Arc;

use greenroom_actors::domain::foreign;
use jsonwebtoken::jwk::{Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use crate::auth::jwt::algorithms::algorithms_of;

/// Maximum number of keys in a set.
const KEYS_MAX: usize = 100;

/// The usable keys of a set.
#[derive(Debug)]
pub(super) struct KeySet(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    key: Arc<DecodingKey>,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads a set, without keys for other algorithms and without secret or private ones.
    pub(super) fn read(document: &[u8], algorithms: &[Algorithm]) -> Result<Self, String> {
        let Document { keys } = foreign::from_slice(document)
            .map_err(|_| "the answer is not a JSON Web Key Set".to_owned())?;
        if keys.len() > KEYS_MAX {
            return Err(format!("the set has {} keys, more than {KEYS_MAX}", keys.len()));
        }
        Ok(Self(keys.into_iter().filter_map(|key| Entry::read(key, algorithms)).collect()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key with that id or, without an id, the only suitable one.
    pub(super) fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<Arc<DecodingKey>> {
        let mut suitable = self.0.iter().filter(|entry| {
            let is_named = kid.is_none() || entry.kid.as_deref() == kid;
            is_named && entry.algorithms.contains(&algorithm)
        });
        let found = suitable.next()?;
        suitable.next().is_none().then(|| Arc::clone(&found.key))
    }
}

impl Entry {
    fn read(key: Value, algorithms: &[Algorithm]) -> Option<Self> {
        // anyone can sign with a published private key
        let is_published_secret = key.get("d").is_some();
        let key: Jwk = serde_json::from_value(key).ok().filter(|_| !is_published_secret)?;
        let common = &key.common;
        let is_for_signatures = common
            .public_key_use
            .as_ref()
            .is_none_or(|it| *it == PublicKeyUse::Signature)
            && common.key_operations.as_ref().is_none_or(|it| it.contains(&KeyOperations::Verify));
        if !is_for_signatures {
            return None;
        }
        let own = DecodingKey::from_jwk(&key).ok();
        let own = own.filter(|own| own.family() != AlgorithmFamily::Hmac)?;
        let possible = algorithms_of(&own);
        let is_meant = |algorithm: Algorithm| {
            common.key_algorithm.is_none_or(|meant| meant == algorithm.into())
        };
        let algorithms: Vec<Algorithm> = algorithms
            .iter()
            .copied()
            .filter(|wanted| possible.contains(wanted) && is_meant(*wanted))
            .collect();
        if algorithms.is_empty() {
            return None;
        }
        Some(Self { kid: key.common.key_id, algorithms, key: Arc::new(own) })
    }
}
