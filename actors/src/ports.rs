//! Ports: traits through which the runtime reaches the outside, and their plain types.

pub mod answer_guard;
pub mod clock;
#[doc(hidden)]
pub mod conformance;
pub mod crash_marks;
pub mod external_calls;
pub mod links;
pub mod members;
pub mod memory;
pub mod meter;
pub mod model;
pub mod store;
pub mod workers;
