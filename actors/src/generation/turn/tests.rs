//! Turns without an actor.
