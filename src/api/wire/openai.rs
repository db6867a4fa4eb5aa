//! OpenAI's Chat Completions API on the wire
//! (<https://platform.openai.com/docs/api-reference/chat>).

mod body;
mod chunks;
mod completion;
mod failure;
mod messages;
mod models;
mod parts;
#[cfg(test)]
mod samples;
mod tools;

pub use body::{CompletionBody, Unsupported};
pub use chunks::{ChunkView, CompletionChunks};
pub use completion::{CompletionHead, CompletionView, Subject};
pub use failure::FailureView;
pub use messages::messages_of;
pub use models::{ModelView, ModelsView};
pub use tools::tools_of;
