//! Stored form of the tree in a snapshot: short names, and no derivable fields.
//!
//! The input of a step is the output of the step before it, and the input of a lane comes from its
//! container, so neither is written: [`super::State::index`] restores both. Long executions consist
//! mostly of small nodes, and this form of a node is smaller than its facts.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::failure::AttemptError;
use crate::question::Questions;
use crate::state::lanes::Lanes;
use crate::state::node::{Child, Node, Phase, Resumed, Sequence};
use crate::stored::is_zero;
use crate::stored::present;
use crate::time::Timestamp;

/// Placeholder for a value until `index` restores it.
static UNKNOWN: LazyLock<Arc<Value>> = LazyLock::new(Arc::default);

fn unknown() -> Arc<Value> {
    Arc::clone(&UNKNOWN)
}

/// Stored form of a node. It lists every field, so that a new field is considered here.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Node")]
struct Written {
    #[serde(rename = "p")]
    phase: Phase,
    #[serde(skip, default = "unknown")]
    input: Arc<Value>,
    #[serde(rename = "n")]
    attempt: u32,
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    failures: u32,
    #[serde(rename = "x", default, skip_serializing_if = "is_zero")]
    interruptions: u32,
    #[serde(
        rename = "r",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    resume: Option<Arc<Value>>,
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    resumed: Option<Box<Resumed>>,
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    questions: Option<Box<Questions>>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    noted: Option<Arc<Value>>,
    #[serde(rename = "q", default, skip_serializing_if = "is_zero")]
    asked: u32,
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(rename = "a")]
    attempt_started_at: Timestamp,
    #[serde(rename = "t")]
    phase_since: Timestamp,
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<AttemptError>,
    #[serde(rename = "s")]
    since_seq: u64,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(rename = "o")]
    ended_order: u64,
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty", with = "lanes")]
    branches: Vec<Sequence>,
    #[serde(skip)]
    lanes: Option<Box<Lanes>>,
    #[serde(rename = "i", default, skip_serializing_if = "Vec::is_empty")]
    items: Vec<Arc<Value>>,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    chosen: Option<usize>,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    child: Option<Child>,
}

struct NodeRef<'a>(&'a Node);

impl Serialize for NodeRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written::serialize(self.0, serializer)
    }
}

struct NodeRead(Node);

impl<'de> Deserialize<'de> for NodeRead {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer).map(Self)
    }
}

struct SequenceRef<'a>(&'a Sequence);

impl Serialize for SequenceRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.nodes.iter().map(NodeRef))
    }
}

struct SequenceRead(Sequence);

impl<'de> Deserialize<'de> for SequenceRead {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Vec::<NodeRead>::deserialize(deserializer)?;
        let nodes = read.into_iter().map(|NodeRead(node)| node).collect();
        Ok(Self(Sequence { data: unknown(), nodes }))
    }
}

mod lanes {
    use super::{Deserialize, Deserializer, Sequence, SequenceRead, SequenceRef, Serializer};

    pub(super) fn serialize<S: Serializer>(
        branches: &[Sequence],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(branches.iter().map(SequenceRef))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Sequence>, D::Error> {
        let read = Vec::<SequenceRead>::deserialize(deserializer)?;
        Ok(read.into_iter().map(|SequenceRead(sequence)| sequence).collect())
    }
}

pub(super) fn serialize<S: Serializer>(root: &Sequence, serializer: S) -> Result<S::Ok, S::Error> {
    SequenceRef(root).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Sequence, D::Error> {
    SequenceRead::deserialize(deserializer).map(|SequenceRead(sequence)| sequence)
}
