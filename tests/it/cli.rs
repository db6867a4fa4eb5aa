//! Client commands: the real program against a real server.

mod exits;
mod profiles;
mod runs;
mod seat;
mod watching;
