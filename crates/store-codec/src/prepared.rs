//! Requests to write, serialized on the caller's thread.

mod append;
mod conversation;
mod generation;
mod log;

pub use self::append::PreparedAppend;
pub use self::conversation::{
    PreparedConversation, PreparedMessage, PreparedMessages, PreparedPatch, folded_text_of,
};
pub use self::generation::{PreparedGeneration, PreparedSteps};
pub use self::log::PreparedLog;
