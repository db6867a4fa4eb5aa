//! Requests to write, serialized on the caller's thread.

mod append;
mod asks;
mod conversation;
mod generation;
mod log;

pub use self::append::PreparedAppend;
pub use self::asks::{
    PreparedAnswer, PreparedAsk, PreparedAskChange, PreparedAskRevision, PreparedMissingAsks,
};
pub use self::conversation::{
    PreparedConversation, PreparedMessage, PreparedMessages, PreparedPatch, folded_text_of,
};
pub use self::generation::{PreparedContinuation, PreparedGeneration, PreparedSteps};
pub use self::log::PreparedLog;
