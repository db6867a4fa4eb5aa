//! The secrets that are struck from what is logged: those known at the start, and those that a
//! change of the configuration brings. None is ever forgotten, since old records may be shown.

use std::sync::{Arc, PoisonError, RwLock};

use crate::telemetry::redact::{Redactor, Secrets};

/// Shared by the logger and by whoever learns of further secrets.
#[derive(Debug)]
pub(super) struct Striking {
    now: RwLock<(Secrets, Arc<Redactor>)>,
}

impl Striking {
    pub(super) fn new(secrets: &Secrets) -> Self {
        Self { now: RwLock::new((secrets.clone(), Arc::new(Redactor::new(secrets)))) }
    }

    pub(super) fn now(&self) -> Arc<Redactor> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Strikes these as well from here on.
    pub(super) fn also(&self, secrets: &Secrets) {
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
    fn what_is_learnt_later_is_struck_as_well() {
        let secrets = |secret: &str| {
            let mut secrets = Secrets::default();
            secrets.add(secret);
            secrets
        };
        let striking = Striking::new(&secrets("first-secret"));
        let struck = || {
            let mut text = "first-secret, second-secret".to_owned();
            striking.now().redact(&mut text, 100);
            text
        };
        assert_eq!(struck(), "[redacted], second-secret");
        striking.also(&secrets("second-secret"));
        assert_eq!(struck(), "[redacted], [redacted]");
    }
}
