//! What the runtime asks of the outside: traits, and the plain types they speak in.

pub mod clock;
pub mod model;
pub mod store;
