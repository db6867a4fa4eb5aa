//! Generations, conversations and messages.

use std::sync::Arc;

use greenroom_actors::ports::store::{
    ApprovedTools, Conversation, ConversationKey, GenerationEntry, GenerationRecord,
    GenerationStep, StepOrigin, StoredMessage,
};

use crate::codes::{generation_status_of, role_of};
use crate::columns::Columns;
use crate::keys::user_of;
use crate::trace::generation_trace;

/// Columns of a generation for [`entry_of`](crate::records::entry_of).
#[macro_export]
macro_rules! generation_columns {
    () => {
        "n, id, agent, status, started, ended, input, output, usage, error, user_id, \
         conversation, execution, path, steps, trace, around"
    };
}

/// Decodes the columns of [`generation_columns`](crate::generation_columns), with the turns that
/// are in the row; [`put_step`] adds later ones.
pub fn entry_of<C: Columns>(row: &C) -> Result<GenerationEntry, C::Error> {
    let origin = row.optional_execution_id(12)?.zip(row.optional_shared(13)?);
    let origin = origin.map(|(execution_id, path)| StepOrigin { execution_id, path });
    let (id, agent_id) = (row.string(1)?, row.string(2)?);
    let agent: Arc<str> = Arc::from(agent_id.as_str());
    let (name, around) = (row.optional_shared(15)?, row.optional_bytes(16)?);
    let trace = generation_trace(row.integer(0)?, &id, &agent, name, around);
    let record = GenerationRecord {
        trace: row.checked(16, trace)?,
        id,
        agent_id,
        status: row.code(3, generation_status_of)?,
        start_time: row.time(4)?,
        end_time: row.optional_time(5)?,
        input: row.json(6)?,
        output: row.optional_json(7)?,
        usage: row.optional_json(8)?,
        error: row.optional_string(9)?,
        user_id: row.optional_string(10)?,
        conversation_id: row.optional_string(11)?,
        origin,
    };
    Ok(GenerationEntry { record, steps: row.optional_json(14)?.unwrap_or_default() })
}

/// Adds a turn that has its own row, or replaces the one with its number. Turns come in order.
pub fn put_step(steps: &mut Vec<GenerationStep>, number: u64, step: GenerationStep) {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    match steps.get_mut(number) {
        Some(known) => *known = step,
        None => steps.push(step),
    }
}

/// Decodes a conversation: agent, user, id, title, metadata, working memory, times of creation and
/// of the last change. The user is a text of [`keys`](crate::keys).
pub fn conversation_of<C: Columns>(row: &C) -> Result<Conversation, C::Error> {
    Ok(Conversation {
        key: ConversationKey {
            agent_id: row.shared(0)?,
            user_id: user_of(&row.text(1)?),
            conversation_id: row.shared(2)?,
        },
        title: row.optional_string(3)?,
        metadata: row.json(4)?,
        working_memory: row.optional_string(5)?,
        created_at: row.time(6)?,
        updated_at: row.time(7)?,
    })
}

/// Decodes the approved tools of a conversation.
pub fn approved_tools_of<C: Columns>(row: &C) -> Result<ApprovedTools, C::Error> {
    Ok(row.optional_text_json(0)?.unwrap_or_default())
}

/// Decodes a message from its id, role, parts, time and generation, which start at the second
/// column; the first is its number.
pub fn message_of<C: Columns>(row: &C) -> Result<StoredMessage, C::Error> {
    Ok(StoredMessage {
        id: row.string(1)?,
        role: row.code(2, role_of)?,
        parts: row.json(3)?,
        created_at: row.time(4)?,
        generation_id: row.optional_string(5)?,
    })
}
