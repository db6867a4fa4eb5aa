//! Has a server hand its slots over to the others, which it notices at its next beat.

use std::sync::Arc;

use super::{Node, NodeReader, NodeState, Nodes, look, panicked};
use crate::open::OpenError;

/// Changes the state of a server that is active.
const LEAVE: &str = "UPDATE nodes SET state = 1 WHERE node = $1 AND state = 0";

/// Reason why a server is not made to leave.
#[derive(Debug, thiserror::Error)]
pub enum LeaveError {
    #[error("the database knows no server {name}; it knows {known}")]
    Unknown { name: String, known: String },
    #[error(
        "{0} has the database for itself, so no other server could take its executions; stop it \
         with SIGTERM"
    )]
    Alone(String),
    #[error("{0} was declared gone, and has no slots")]
    Gone(String),
    #[error(
        "no other server is active and shows signs of life, so the slots of {0} would have no \
         taker; start another one first, or stop {0} with SIGTERM"
    )]
    NoTaker(String),
    #[error("{0} was started again, and takes slots")]
    StartedAgain(String),
    #[error(transparent)]
    Database(#[from] OpenError),
}

impl NodeReader {
    /// Has a server hand its slots over. It stays a member without slots until it is stopped, and
    /// is active again when it starts again. Returns false if it was leaving before. Blocks.
    pub fn set_leaving(&self, name: &str) -> Result<bool, LeaveError> {
        let (client, name) = (Arc::clone(&self.client), name.to_owned());
        let leaving = async move {
            loop {
                let Some(node) = leaver(&look(&client).await?, &name)? else { return Ok(false) };
                let changed = client.execute(LEAVE, &[&node]).await.map_err(OpenError::from)?;
                // otherwise it has ended meanwhile, or is to leave by another command
                if changed > 0 {
                    return Ok(true);
                }
            }
        };
        self.driver.run(leaving, None).ok_or_else(panicked)?
    }

    /// Waits until a server that leaves has no slots, or is no longer there; blocks.
    pub fn wait_until_left(&self, name: &str) -> Result<(), LeaveError> {
        let (client, name) = (Arc::clone(&self.client), name.to_owned());
        let left = async move {
            // each look takes a beat
            while !has_left(&look(&client).await?, &name)? {}
            Ok(())
        };
        self.driver.run(left, None).ok_or_else(panicked)?
    }
}

/// Returns true if no server of the name has slots. One that was started again serves on.
fn has_left(nodes: &Nodes, name: &str) -> Result<bool, LeaveError> {
    let named: Vec<_> = nodes.live().filter(|node| node.name == name).collect();
    if named.iter().any(|node| node.state == NodeState::Active) {
        return Err(LeaveError::StartedAgain(name.to_owned()));
    }
    Ok(named.iter().all(|node| node.slots == 0))
}

/// Returns the number of the process that is to leave; `None` if it leaves already.
fn leaver(nodes: &Nodes, name: &str) -> Result<Option<i64>, LeaveError> {
    // the newest one of a name is the last
    let Some(node) = nodes.nodes.iter().rfind(|node| node.name == name) else {
        let known: Vec<_> = nodes.live().map(|node| node.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(LeaveError::Unknown { name: name.to_owned(), known });
    };
    match (node.state, node.lease) {
        (NodeState::Gone, _) => Err(LeaveError::Gone(name.to_owned())),
        (NodeState::Active | NodeState::Leaving, None) => Err(LeaveError::Alone(name.to_owned())),
        (NodeState::Leaving, Some(_)) => Ok(None),
        (NodeState::Active, Some(_)) => {
            let takes =
                |it: &Node| it.node != node.node && it.state == NodeState::Active && it.is_beating;
            let has_taker = nodes.nodes.iter().any(takes);
            if has_taker { Ok(Some(node.node)) } else { Err(LeaveError::NoTaker(name.to_owned())) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn member(node: i64, name: &str, state: NodeState) -> Node {
        Node {
            node,
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            address: None,
            state,
            lease: Some(Duration::from_secs(6)),
            is_beating: state != NodeState::Gone,
            slots: 0,
            unreachable: Vec::new(),
            beat: 7,
        }
    }

    #[test]
    fn a_server_leaves_if_another_one_can_take_its_slots() {
        use NodeState::{Active, Gone, Leaving};
        let of = |nodes: &[(i64, &str, NodeState)]| {
            let nodes = nodes.iter().map(|(node, name, state)| member(*node, name, *state));
            Nodes { nodes: nodes.collect(), slots_unowned: 0 }
        };
        let refusal = |nodes: &Nodes| leaver(nodes, "a").unwrap_err().to_string();
        let both = of(&[(1, "a", Active), (2, "b", Active)]);
        assert!(matches!(leaver(&both, "a"), Ok(Some(1))));
        assert!(matches!(leaver(&of(&[(1, "a", Leaving), (2, "b", Active)]), "a"), Ok(None)));
        assert!(refusal(&of(&[(1, "a", Gone), (2, "b", Active)])).contains("was declared gone"));
        for other in [Leaving, Gone] {
            let nodes = of(&[(1, "a", Active), (2, "b", other)]);
            assert!(refusal(&nodes).starts_with("no other server is active"));
        }
        let mut silent = both;
        silent.nodes[1].is_beating = false;
        assert!(refusal(&silent).starts_with("no other server is active"));
        let mut alone = of(&[(1, "a", Active)]);
        alone.nodes[0].lease = None;
        assert!(refusal(&alone).starts_with("a has the database for itself"));
        let unknown = "the database knows no server a; it knows ";
        assert_eq!(refusal(&of(&[(2, "b", Active)])), format!("{unknown}b"));
        assert_eq!(refusal(&of(&[])), format!("{unknown}none"));
    }

    #[test]
    fn a_server_has_left_when_it_has_no_slots() {
        let of = |state, slots| Nodes {
            nodes: vec![Node { slots, ..member(1, "a", state) }, member(2, "b", NodeState::Active)],
            slots_unowned: 0,
        };
        for (state, slots, expected) in [
            (NodeState::Leaving, 7, false),
            (NodeState::Leaving, 0, true),
            (NodeState::Gone, 7, true),
        ] {
            assert_eq!(has_left(&of(state, slots), "a").unwrap(), expected, "{state:?} {slots}");
        }
        assert!(has_left(&of(NodeState::Active, 7), "none").unwrap(), "it was stopped");
        let again = has_left(&of(NodeState::Active, 7), "a").unwrap_err();
        assert_eq!(again.to_string(), "a was started again, and takes slots");
    }
}
