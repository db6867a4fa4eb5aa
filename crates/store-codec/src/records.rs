//! Records, decoded from the columns of a row.
//!
//! Every decoder expects its columns in one order, which is that of the macro or the list beside
//! it. A store whose columns have other names selects its own list in that order.

mod agents;
mod asks;
mod execution;
mod known_tools;
mod log;
#[cfg(test)]
mod tests;

pub use self::agents::{approved_tools_of, conversation_of, entry_of, message_of, put_step};
pub use self::asks::{
    ASKS_SCANNED_MAX, AskPageBuilder, NO_DEADLINE, add_due_ask, ask_content_of, ask_cursor_of,
    ask_of, ask_rules_of, count_open_asks,
};
pub use self::execution::{
    AROUND, DEFINITION, EVENTS, REPLAYED_FROM, end_of, idempotency_of, projection_of, start_of,
    timer_of,
};
pub use self::known_tools::known_tool_of;
pub use self::log::log_record_of;
