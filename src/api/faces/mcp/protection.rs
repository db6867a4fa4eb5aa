//! The place where clients get a token for a face (RFC 9728).

use serde_json::{Value, json};

/// Path before that of the protected resource.
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Protection of a face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    /// Address of the face, as clients reach it.
    pub resource: String,
    /// Address of what [`Protection::describe`] returns.
    pub metadata: String,
    /// Servers whose tokens are accepted.
    pub issuers: Vec<String>,
}

impl Protection {
    /// Returns the metadata of the face.
    pub fn describe(&self) -> Value {
        json!({
            "resource": self.resource,
            "authorization_servers": self.issuers,
            "bearer_methods_supported": ["header"],
        })
    }

    /// Returns a challenge with the address of the metadata.
    pub fn challenge(&self, challenge: &str) -> String {
        let separator = if challenge.contains('=') { "," } else { "" };
        format!("{challenge}{separator} resource_metadata=\"{}\"", self.metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_say_where_the_metadata_is() {
        let protection = Protection {
            resource: "https://a.example/mcp".to_owned(),
            metadata: "https://a.example/.well-known/oauth-protected-resource/mcp".to_owned(),
            issuers: vec!["https://id.example".to_owned()],
        };
        for (challenge, expected) in [
            ("Bearer", "Bearer resource_metadata="),
            (
                "Bearer error=\"invalid_token\"",
                "Bearer error=\"invalid_token\", resource_metadata=",
            ),
        ] {
            let whole = protection.challenge(challenge);
            assert_eq!(whole, format!("{expected}\"{}\"", protection.metadata));
        }
        let metadata = protection.describe();
        assert_eq!(metadata["authorization_servers"], json!(["https://id.example"]));
    }
}
