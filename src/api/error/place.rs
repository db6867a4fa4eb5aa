//! Places in bodies that refusals name.

use std::fmt::Display;

use super::ApiError;

impl ApiError {
    /// Refuses the value at a path of the body.
    pub fn body(path: impl Display, what: impl Display) -> Self {
        Self::InvalidBody(format!("{path}: {what}"))
    }

    /// Refuses a member of the body that asks for what the server does not do.
    pub fn unsupported(place: impl Into<String>, what: &'static str) -> Self {
        Self::Unsupported { place: place.into(), what }
    }

    /// Returns the path of what is wrong in the body, if it is known.
    pub fn place(&self) -> Option<&str> {
        if matches!(self, Self::ModelNotFound(_)) {
            return Some("model");
        }
        if let Self::Unsupported { place, .. } = self {
            return Some(place);
        }
        let Self::InvalidBody(text) = self else { return None };
        let (place, _) = text.split_once(": ")?;
        (!place.contains(char::is_whitespace)).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_a_path_of_the_body() {
        let rows = [
            (ApiError::body("messages[0].role", "unknown role"), Some("messages[0].role")),
            (ApiError::InvalidBody("must be an object".to_owned()), None),
            (ApiError::InvalidBody("invalid type: sequence".to_owned()), None),
            (ApiError::unsupported("n", "one answer is given"), Some("n")),
            (ApiError::ModelNotFound("a".to_owned().into()), Some("model")),
            (ApiError::Internal, None),
        ];
        for (refusal, place) in rows {
            assert_eq!(refusal.place(), place, "{refusal}");
        }
    }
}
