//! CPU of a process together with its children: PostgreSQL has one process per connection.

use std::fs;
use std::io;
use std::time::Duration;

use crate::process::cpu_of;

/// A process and its children, observed from outside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Family {
    /// Process id of the parent.
    pub(crate) parent: u32,
}

impl Family {
    /// Returns the user and system time of the parent and of all its children, also of those that
    /// have ended.
    pub(crate) fn cpu(self) -> io::Result<Duration> {
        let parent = self.parent;
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
        // fields 14 to 17 of proc(5): its own times, and those of the children it has waited for
        let text = fs::read_to_string(format!("/proc/{parent}/stat"))?;
        let own = cpu_of(&text, 14..=17);
        let own = own.ok_or_else(|| io::Error::other(format!("not understood: {text}")))?;
        let of_child = |id: &str| {
            // a child may end in the meantime
            let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            cpu_of(&text, 14..=15)
        };
        Ok(own + children.split_whitespace().filter_map(of_child).sum::<Duration>())
    }
}
