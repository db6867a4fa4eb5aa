//! `[faces]`: APIs for clients that speak other protocols. None is served unless it is configured.

mod mcp;
mod openai;

use toml::de::DeValue;

use super::names::{NameKind, Reference};
use super::section::Section;
use crate::faces::{Offered, OpenAiFace};

pub use self::mcp::McpFace;
pub(crate) use self::mcp::{face_text, face_url};
pub(crate) use crate::faces::{FACE_NAME_CHARS_MAX, is_face_name};

/// Value in place of a list of names.
const ALL: &str = "*";

/// Doors for clients that speak other protocols.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FacesConfig {
    /// `[faces.openai]`
    pub openai: Option<OpenAiFace>,
    /// `[[faces.mcp]]`, in the order of the file.
    pub mcp: Vec<McpFace>,
}

impl FacesConfig {
    /// Reads the section; names that it refers to are looked up later.
    pub(super) fn read(section: Section<'_>, references: &mut Vec<Reference>) -> Self {
        let openai = section.section("openai").map(|face| openai::read(face, references));
        let mcp = mcp::read_all(section.sections("mcp"), references);
        section.close();
        Self { openai, mcp }
    }
}

/// Reads `"*"` or an array of ids, which are looked up later.
fn offered(
    section: &Section<'_>,
    key: &'static str,
    kind: NameKind,
    references: &mut Vec<Reference>,
) -> Option<Offered> {
    let entry = section.get(key)?;
    match entry.value {
        DeValue::String(text) if text == ALL => Some(Offered::All),
        DeValue::Array(_) => {
            let items = entry.items()?.into_iter();
            let ids = items.filter_map(|item| item.reference(kind, references));
            Some(Offered::Only(ids.collect()))
        }
        _ => entry.refuse(format!("must be \"{ALL}\" or an array of ids of {kind}s")),
    }
}
