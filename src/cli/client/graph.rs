//! The steps of a workflow as a graph: text, Mermaid and SVG.

mod svg;

use std::fmt::Write as _;

use clap::ValueEnum;
use greenroom_actors::domain::definition::{Container, StepType};
use serde_json::Value;

use super::text::{items, plain, text};

/// Form of a graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// A tree for people.
    #[default]
    Text,
    /// A flowchart for documents.
    Mermaid,
    /// A picture.
    Svg,
}

/// Steps, and their order.
#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// A step, or the begin or end of the workflow.
#[derive(Debug)]
struct Node {
    name: String,
    /// Type of the step; empty for the begin and the end.
    kind: String,
}

/// An order of two nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    from: usize,
    to: usize,
    label: String,
}

/// A place that the next step follows, and the text of that edge.
type Exit = (usize, String);

/// Draws a workflow.
pub(super) fn draw(workflow: &Value, format: Format) -> String {
    match format {
        Format::Text => tree(workflow),
        Format::Mermaid => Graph::of(workflow).mermaid(),
        Format::Svg => svg::draw(&Graph::of(workflow)),
    }
}

fn tree(workflow: &Value) -> String {
    let mut lines = plain(text(workflow, "id"));
    branches(items(workflow, "steps"), "", &mut lines);
    lines
}

fn branches(steps: &[Value], indent: &str, lines: &mut String) {
    for (index, step) in steps.iter().enumerate() {
        let is_last = index + 1 == steps.len();
        let (mark, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let block = match text(step, "block") {
            "" => String::new(),
            block => format!("{}: ", plain(block)),
        };
        // writes to a string cannot fail
        let _ = write!(lines, "\n{indent}{mark}{block}{}  {}", name_of(step), kind_of(step));
        branches(items(step, "steps"), &format!("{indent}{below}"), lines);
    }
}

fn name_of(step: &Value) -> String {
    plain(text(step, "id"))
}

/// Returns the type of a step, and the agent or the workflow that it calls.
fn kind_of(step: &Value) -> String {
    let of = [text(step, "agentId"), text(step, "workflowId")].concat();
    plain(format!("{} {of}", text(step, "type")).trim_end())
}

impl Graph {
    fn of(workflow: &Value) -> Self {
        let mut graph = Self::default();
        let begin = graph.add("begin", "");
        let exits = graph.chain(items(workflow, "steps"), vec![(begin, String::new())]);
        let end = graph.add("end", "");
        graph.join(&exits, end);
        graph
    }

    fn add(&mut self, name: &str, kind: &str) -> usize {
        self.nodes.push(Node { name: name.to_owned(), kind: kind.to_owned() });
        self.nodes.len() - 1
    }

    fn join(&mut self, exits: &[Exit], to: usize) {
        for (from, label) in exits {
            self.edges.push(Edge { from: *from, to, label: label.clone() });
        }
    }

    /// Adds steps that follow each other, and returns the exits of the last one.
    fn chain(&mut self, steps: &[Value], mut exits: Vec<Exit>) -> Vec<Exit> {
        for step in steps {
            let node = self.add(&name_of(step), &kind_of(step));
            self.join(&exits, node);
            exits = self.below(step, node);
        }
        exits
    }

    /// Adds the blocks of a step, and returns its exits.
    fn below(&mut self, step: &Value, node: usize) -> Vec<Exit> {
        let inner = items(step, "steps");
        let blocks: Vec<&[Value]> =
            inner.chunk_by(|one, other| text(one, "block") == text(other, "block")).collect();
        let Some(first) = blocks.first() else { return vec![(node, String::new())] };
        // a newer server may have a kind that is unknown here
        match StepType::named(text(step, "type")).and_then(StepType::container) {
            Some(Container::Items | Container::Rounds) => {
                let exits = self.chain(first, vec![(node, "each".to_owned())]);
                let again = exits.iter().map(|(from, _)| (*from, "again".to_owned()));
                self.join(&again.collect::<Vec<_>>(), node);
                exits
            }
            Some(Container::Optional) => {
                let mut exits = self.chain(first, vec![(node, "yes".to_owned())]);
                exits.push((node, "no".to_owned()));
                exits
            }
            Some(Container::OneOf | Container::All | Container::Race) | None => {
                let mut exits = Vec::new();
                for block in blocks {
                    let label = block.first().map(|step| plain(text(step, "block")));
                    exits.extend(self.chain(block, vec![(node, label.unwrap_or_default())]));
                }
                exits
            }
        }
    }

    fn mermaid(&self) -> String {
        let mut lines = "flowchart TD".to_owned();
        for (index, node) in self.nodes.iter().enumerate() {
            let name = quoted(&node.name);
            // writes to a string cannot fail
            let _ = if node.kind.is_empty() {
                write!(lines, "\n  n{index}([\"{name}\"])")
            } else {
                write!(lines, "\n  n{index}[\"{name}<br/><small>{}</small>\"]", quoted(&node.kind))
            };
        }
        for Edge { from, to, label } in &self.edges {
            let label =
                if label.is_empty() { String::new() } else { format!("|\"{}\"|", quoted(label)) };
            let _ = write!(lines, "\n  n{from} -->{label} n{to}");
        }
        lines
    }
}

/// Escapes what ends a text, in Mermaid and in SVG.
fn quoted(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workflow() -> Value {
        let step = |id: &str, block: &str| json!({ "id": id, "type": "andThen", "block": block });
        json!({ "id": "w", "steps": [
            { "id": "all", "type": "andAll", "steps": [step("l1", "l"), step("l2", "l"), step("r<1>", "r")] },
            { "id": "loop", "type": "andDoWhile", "steps": [step("again", "b")] },
            { "id": "if", "type": "andWhen", "steps": [step("then", "b")] },
            { "id": "ask", "type": "andAgent", "agentId": "ann" },
        ] })
    }

    #[test]
    fn text_is_a_tree() {
        let expected = "w
├─ all  andAll
│  ├─ l: l1  andThen
│  ├─ l: l2  andThen
│  └─ r: r<1>  andThen
├─ loop  andDoWhile
│  └─ b: again  andThen
├─ if  andWhen
│  └─ b: then  andThen
└─ ask  andAgent ann";
        assert_eq!(draw(&workflow(), Format::Text), expected);
    }

    #[test]
    fn mermaid_has_every_order() {
        let drawn = draw(&workflow(), Format::Mermaid);
        let nodes =
            ["begin", "all", "l1", "l2", "r<1>", "loop", "again", "if", "then", "ask", "end"];
        let name = |place: &str| nodes[place.trim_start_matches('n').parse::<usize>().unwrap()];
        let edges: Vec<_> = drawn
            .lines()
            .filter_map(|line| line.trim().split_once(" -->"))
            .map(|(from, to)| {
                let (label, to) = to.rsplit_once(' ').unwrap();
                format!("{}{}>{}", name(from), label.replace(['|', '"'], ":"), name(to))
            })
            .collect();
        let expected = [
            "begin>all",
            "all::l::>l1",
            "l1>l2",
            "all::r::>r<1>",
            "l2>loop",
            "r<1>>loop",
            "loop::each::>again",
            "again::again::>loop",
            "again>if",
            "if::yes::>then",
            "then>ask",
            "if::no::>ask",
            "ask>end",
        ];
        assert_eq!(edges, expected);
        assert!(drawn.contains("n4[\"r&lt;1&gt;<br/>"), "{drawn}");
        assert!(drawn.starts_with("flowchart TD\n  n0([\"begin\"])\n"), "{drawn}");
    }

    #[test]
    fn a_picture_has_every_node_and_order() {
        let drawn = draw(&workflow(), Format::Svg);
        assert_eq!(drawn.matches("<rect ").count(), 11);
        assert_eq!(drawn.matches("<path d=").count(), 13 + 1, "and the arrow head");
        assert!(drawn.contains("r&lt;1&gt;</text>"), "{drawn}");
        assert!(drawn.ends_with("</svg>"), "{drawn}");
    }
}
