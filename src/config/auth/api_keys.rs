//! `[[auth.api_keys]]`: hashes of the keys of programs.

use serde_json::Map;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::auth::{ApiKeySettings, User};
use crate::config::entry::Entry;
use crate::config::lone_role::LoneRole;
use crate::config::section::Section;

pub(super) fn read(entry: &Entry<'_>) -> Vec<ApiKeySettings> {
    let sections = entry.sections();
    if entry.items().is_some_and(|items| items.is_empty()) {
        entry.place.refuse("needs at least one key");
    }
    let mut keys: Vec<ApiKeySettings> = Vec::new();
    for section in sections {
        let place = section.place.clone();
        let Some(key) = api_key(section) else { continue };
        if keys.iter().any(|known| known.id == key.id) {
            place.refuse(format!("the id {} is used by two keys", key.id));
        } else if let Some(known) = keys.iter().find(|known| known.hash == key.hash) {
            place.refuse(format!("has the same hash as key {}", known.id));
        }
        keys.push(key);
    }
    keys
}

fn api_key(section: Section<'_>) -> Option<ApiKeySettings> {
    let id = section.required("id").and_then(|entry| id(&entry));
    let hash = section.required("hash").and_then(|entry| hash(&entry));
    let user = section.get("user").map(|entry| user(&entry));
    section.close();
    Some(ApiKeySettings { id: id?, hash: hash?, user: user.unwrap_or_else(|| Some(Map::new()))? })
}

/// Reads the id of a key, which is the user's id where the profile has none.
fn id(entry: &Entry<'_>) -> Option<String> {
    let text = entry.filled_text()?;
    let named = User::new(Map::new()).and_then(|user| user.or_id(Some(&Value::from(&*text))));
    if named.is_err() {
        return entry.refuse("must be a valid user id: 1 to 200 characters without `/`");
    }
    Some(text)
}

/// Reads the hash of a key. Errors do not repeat the text, which may be the key itself.
fn hash(entry: &Entry<'_>) -> Option<[u8; 32]> {
    let written = match entry.value {
        toml::de::DeValue::String(text) => text.strip_prefix("sha256:").and_then(sha256),
        _ => None,
    };
    if written.is_some_and(|hash| hash[..] == Sha256::digest("")[..]) {
        return entry.refuse("is the hash of an empty key: $KEY was not set");
    }
    if written.is_none() {
        entry.place.refuse(
            "must be \"sha256:\" and 64 hexadecimal digits, as printed by `printf %s \"$KEY\" | \
             sha256sum`",
        );
    }
    written
}

fn sha256(digits: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[index * 2..index * 2 + 2], 16).ok()?;
    }
    Some(hash)
}

/// Reads the profile of a key's user; values are literal.
fn user(entry: &Entry<'_>) -> Option<Map<String, Value>> {
    let section = entry.section()?;
    LoneRole::note(&section);
    let Value::Object(profile) = entry.json()? else { return None };
    if User::new(profile.clone()).is_err() {
        return entry.refuse("has an invalid `id`: it must be 1 to 200 characters without `/`");
    }
    Some(profile)
}
