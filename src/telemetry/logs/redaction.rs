//! The current redactor of log records. Reloads of the configuration add secrets; none is ever
//! removed, since old records may be shown.

use std::sync::{Arc, PoisonError, RwLock};

use crate::telemetry::redact::{Redactor, Secrets};

/// Redactor shared by the logger and by reloads of the configuration.
#[derive(Debug)]
pub(super) struct Redaction {
    now: RwLock<(Secrets, Arc<Redactor>)>,
}

impl Redaction {
    pub(super) fn new(secrets: &Secrets) -> Self {
        Self { now: RwLock::new((secrets.clone(), Arc::new(Redactor::new(secrets)))) }
    }

    pub(super) fn current(&self) -> Arc<Redactor> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Adds secrets to redact from now on.
    pub(super) fn add(&self, secrets: &Secrets) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let mut all = now.0.clone();
        all.join(secrets);
        if all != now.0 {
            let redactor = Arc::new(Redactor::new(&all));
            *now = (all, redactor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_added_later_are_redacted() {
        let secrets = |secret: &str| {
            let mut secrets = Secrets::default();
            secrets.add(secret);
            secrets
        };
        let redaction = Redaction::new(&secrets("first-secret"));
        let redacted = || {
            let mut text = "first-secret, second-secret".to_owned();
            redaction.current().redact(&mut text, 100);
            text
        };
        assert_eq!(redacted(), "[redacted], second-secret");
        redaction.add(&secrets("second-secret"));
        assert_eq!(redacted(), "[redacted], [redacted]");
    }
}
