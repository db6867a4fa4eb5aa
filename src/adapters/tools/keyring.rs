//! Secrets of the environment, opened when a call is made.

use std::env::VarError;
use std::fmt;
use std::sync::Arc;

use greenroom_actors::domain::call::SealedText;

/// Secrets shorter than this are not looked for in answers: they would be found in everything.
const SOUGHT_BYTES_MIN: usize = 6;

/// What stands in place of a secret.
const STRUCK: &str = "[secret]";

/// Where secrets are found by name. Cheap to clone; prints none.
#[derive(Clone)]
pub struct Keyring(Arc<Lookup>);

type Lookup = dyn Fn(&str) -> Result<String, VarError> + Send + Sync;

impl Keyring {
    /// The environment of the process.
    pub fn of_process() -> Self {
        Self::new(|name| std::env::var(name))
    }

    /// Secrets from elsewhere.
    pub fn new(secret: impl Fn(&str) -> Result<String, VarError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(secret))
    }

    /// A secret, or why there is none. Says the name and never the value.
    pub fn secret(&self, name: &str) -> Result<String, String> {
        match (self.0)(name) {
            Ok(value) if value.is_empty() => {
                Err(format!("the environment variable {name} is empty"))
            }
            Ok(value) => Ok(value),
            Err(VarError::NotPresent) => Err(format!("the environment variable {name} is not set")),
            Err(VarError::NotUnicode(_)) => {
                Err(format!("the environment variable {name} is not UTF-8"))
            }
        }
    }

    /// The texts with their secrets, and what must not come back.
    pub(super) fn open<'a>(
        &self,
        texts: impl IntoIterator<Item = (&'a Arc<str>, &'a SealedText)>,
    ) -> Result<Opened, String> {
        let mut opened = Opened::default();
        for (name, text) in texts {
            for secret in text.secrets() {
                opened.secrets.0.push(self.secret(secret)?);
            }
            let value = text.opened(|name| self.secret(name))?;
            opened.texts.push((Arc::clone(name), value));
        }
        Ok(opened)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring")
    }
}

/// Texts with their secrets in them. Not to be shown.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) texts: Vec<(Arc<str>, String)>,
    pub(super) secrets: Known,
}

/// Secrets that the other side knows, and may say again.
#[derive(Default)]
pub(super) struct Known(Vec<String>);

impl Known {
    /// A text from outside without the secrets, also where they stand in JSON.
    pub(super) fn struck_from(&self, text: String) -> String {
        let sought = self.0.iter().filter(|secret| secret.len() >= SOUGHT_BYTES_MIN);
        sought.fold(text, |text, secret| {
            let json = serde_json::Value::from(secret.as_str()).to_string();
            let escaped = json.trim_matches('"');
            [secret.as_str(), escaped].into_iter().fold(text, |text, form| {
                match text.contains(form) {
                    true => text.replace(form, STRUCK),
                    false => text,
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::call::SealedPart;

    use super::*;

    fn keyring() -> Keyring {
        Keyring::new(|name| match name {
            "EMPTY" => Ok(String::new()),
            "SHORT" => Ok("abc".to_owned()),
            "QUOTED" => Ok("cana\"ry".to_owned()),
            "KEY" => Ok("canary-1".to_owned()),
            _ => Err(VarError::NotPresent),
        })
    }

    #[test]
    fn a_secret_that_is_not_there_is_told_by_its_name() {
        for (name, expected) in [
            ("KEY", Ok("canary-1")),
            ("EMPTY", Err("the environment variable EMPTY is empty")),
            ("NONE", Err("the environment variable NONE is not set")),
        ] {
            let found = keyring().secret(name);
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
        assert_eq!(format!("{:?}", keyring()), "Keyring");
    }

    #[test]
    fn secrets_are_struck_out() {
        for (name, said, expected) in [
            ("KEY", "a canary-1 b canary-1", "a [secret] b [secret]"),
            ("QUOTED", r#"{"a":"cana\"ry"}"#, r#"{"a":"[secret]"}"#),
            ("SHORT", "abc", "abc"),
        ] {
            let text = SealedText(vec![SealedPart::Secret(Arc::from(name))]);
            let header = Arc::from("x");
            let opened = keyring().open([(&header, &text)]).ok().unwrap();
            assert_eq!(opened.secrets.struck_from(said.to_owned()), expected);
        }
    }
}
