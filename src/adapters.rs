//! What the runtime's ports are made of here: models, stores, tools.

pub mod rehearsal;
