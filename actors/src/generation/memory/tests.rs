//! What is taken from a conversation and left in it.
