//! A configuration that is edited under a server that runs.

#[cfg(test)]
mod reload {
    #[path = "../rig/rig.rs"]
    #[expect(dead_code, reason = "of the rig, these tests need the process and its door alone")]
    mod rig;

    mod edits;
}
