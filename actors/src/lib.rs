//! The runtime of greenroom: workflow executions and agent generations as actors over a journal.
//!
//! Knows executions, definitions and models; knows nothing of HTTP, of configuration files or of
//! a particular database. The server and any other front end go through [`Runtime`] alone.

pub mod domain;
pub mod ports;
