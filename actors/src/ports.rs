//! What the runtime asks of the outside: traits, and the plain types they speak in.

pub mod clock;
#[doc(hidden)]
pub mod conformance;
pub mod crash_marks;
pub mod external_calls;
pub mod memory;
pub mod meter;
pub mod model;
pub mod store;
pub mod workers;
