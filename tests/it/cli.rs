//! Client commands: the real program against a real server.

mod around;
mod exits;
mod observing;
mod operating;
mod people;
mod profiles;
mod runs;
mod seat;
mod testing;
mod watching;
