//! Removal of the secrets of a connection from what its server sends.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use crate::adapters::tools::secrets::Known;

/// Maximum number of tokens that are removed, the newest ones: older ones have ended.
const TOKENS_MAX: usize = 4;

/// Secrets that were sent to a server, or for a token of it. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Sent(Arc<RwLock<Parts>>);

#[derive(Debug, Default)]
struct Parts {
    configured: Arc<Known>,
    tokens: VecDeque<String>,
    all: Arc<Known>,
}

impl Sent {
    /// Returns those so far.
    pub(super) fn known(&self) -> Arc<Known> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).all)
    }

    /// Puts the secrets of the configuration in the place of former ones.
    pub(super) fn configure(&self, secrets: Arc<Known>) {
        self.change(|parts| parts.configured = secrets);
    }

    /// Adds a token.
    pub(super) fn add_token(&self, token: &str) {
        self.change(|parts| {
            parts.tokens.push_back(token.to_owned());
            if parts.tokens.len() > TOKENS_MAX {
                parts.tokens.pop_front();
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Parts)) {
        let mut parts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut parts);
        parts.all = match parts.tokens.is_empty() {
            true => Arc::clone(&parts.configured),
            false => Arc::new(parts.configured.and(parts.tokens.iter().cloned())),
        };
    }

    #[cfg(test)]
    pub(super) fn of<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let sent = Self::default();
        sent.configure(Arc::new(Known::of(secrets)));
        sent
    }
}

/// Cleans all texts of a value, names of members included. A number that is a secret becomes a text.
pub(super) fn clean_value(value: &mut Value, clean: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = clean(text),
        Value::Number(number) => {
            let text = number.to_string();
            let cleaned = clean(&text);
            if cleaned != text {
                *value = Value::String(cleaned);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean_value(item, clean)),
        Value::Object(members) => {
            for (name, mut member) in std::mem::take(members) {
                clean_value(&mut member, clean);
                members.insert(clean(&name), member);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_removed_from_texts_names_and_numbers() {
        let clean = |text: &str| text.replace("10482093", "[secret]");
        let mut value = json!({
            "account": 10_482_093, "10482093": true, "text": ["say \"10482093\"", 7], "none": null,
        });
        clean_value(&mut value, &clean);
        let expected = json!({
            "account": "[secret]", "[secret]": true, "text": ["say \"[secret]\"", 7], "none": null,
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn the_newest_tokens_are_secrets() {
        let sent = Sent::of(["k3y-of-it"]);
        let (before, text) = (sent.known(), "k3y-of-it token-0 token-1 token-4");
        (0..=TOKENS_MAX).for_each(|n| sent.clone().add_token(&format!("token-{n}")));
        assert_eq!(before.removed_from(text.to_owned()), "[secret] token-0 token-1 token-4");
        let cleaned = sent.known().removed_from(text.to_owned());
        assert_eq!(cleaned, "[secret] token-0 [secret] [secret]");
        sent.configure(Arc::default());
        let cleaned = sent.known().removed_from(text.to_owned());
        assert_eq!(cleaned, "k3y-of-it token-0 [secret] [secret]");
    }
}
