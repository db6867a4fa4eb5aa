//! A graph as a picture: nodes in rows, each below those that it follows.

use std::fmt::Write as _;

use super::{Edge, Graph, quoted};
use crate::cli::client::table::shortened;

/// Size of a node, and the space between two of them.
const WIDTH: usize = 180;
const HEIGHT: usize = 44;
const GAP_X: usize = 30;
const GAP_Y: usize = 46;

/// Space around the picture.
const MARGIN: usize = 40;

/// Most letters of a name that fit into a node.
const LETTERS_MAX: usize = 26;

/// Place of a node: its row, and its number in the row.
#[derive(Debug, Clone, Copy)]
struct Place {
    row: usize,
    column: usize,
}

/// Draws a graph.
pub(super) fn draw(graph: &Graph) -> String {
    let places = places(graph);
    let rows = places.iter().map(|place| place.row + 1).max().unwrap_or(0);
    let in_row = |row| places.iter().filter(|place| place.row == row).count();
    let columns = (0..rows).map(in_row).max().unwrap_or(0);
    let (width, height) = (
        2 * MARGIN + columns * (WIDTH + GAP_X) - GAP_X.min(columns * GAP_X),
        2 * MARGIN + rows * (HEIGHT + GAP_Y) - GAP_Y.min(rows * GAP_Y),
    );
    let centre = |place: Place| {
        let row_width = in_row(place.row) * (WIDTH + GAP_X) - GAP_X;
        let x = (width - row_width) / 2 + place.column * (WIDTH + GAP_X) + WIDTH / 2;
        (x, MARGIN + place.row * (HEIGHT + GAP_Y))
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" text-anchor=\"middle\">\n\
         <defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#667\"/></marker></defs>"
    );
    for edge in &graph.edges {
        line(&mut svg, edge, centre(places[edge.from]), centre(places[edge.to]));
    }
    for (node, place) in graph.nodes.iter().zip(&places) {
        let (x, y) = centre(*place);
        let round = if node.kind.is_empty() { HEIGHT / 2 } else { 6 };
        let name = quoted(&shortened(&node.name, LETTERS_MAX));
        let name_y = y + if node.kind.is_empty() { 27 } else { 19 };
        // writes to a string cannot fail
        let _ = write!(
            svg,
            "\n<rect x=\"{}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"{round}\" \
             fill=\"#f4f6fb\" stroke=\"#667\"/>\n<text x=\"{x}\" y=\"{name_y}\">{name}</text>",
            x - WIDTH / 2,
        );
        if !node.kind.is_empty() {
            let kind = quoted(&shortened(&node.kind, LETTERS_MAX));
            let y = y + 35;
            let _ = write!(
                svg,
                "\n<text x=\"{x}\" y=\"{y}\" font-size=\"11\" fill=\"#667\">{kind}</text>"
            );
        }
    }
    svg.push_str("\n</svg>");
    svg
}

/// Draws the line of an edge; one that leads up goes around the nodes at the right.
fn line(svg: &mut String, edge: &Edge, from: (usize, usize), to: (usize, usize)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let is_back = y2 <= y1;
    let (path, label_x, label_y) = if is_back {
        let (right, side) = (x1 + WIDTH / 2, x1.max(x2) + WIDTH / 2 + 24);
        let (start, end) = (y1 + HEIGHT / 2, y2 + HEIGHT / 2);
        let end_x = x2 + WIDTH / 2;
        (
            format!("M{right} {start}C{side} {start} {side} {end} {end_x} {end}"),
            side,
            start.midpoint(end),
        )
    } else {
        let start = y1 + HEIGHT;
        let middle = start.midpoint(y2);
        (format!("M{x1} {start}C{x1} {middle} {x2} {middle} {x2} {y2}"), x1.midpoint(x2), middle)
    };
    // writes to a string cannot fail
    let _ = write!(
        svg,
        "\n<path d=\"{path}\" fill=\"none\" stroke=\"#667\" marker-end=\"url(#head)\"/>"
    );
    if !edge.label.is_empty() {
        let label = quoted(&shortened(&edge.label, LETTERS_MAX));
        let _ = write!(
            svg,
            "\n<text x=\"{label_x}\" y=\"{label_y}\" font-size=\"11\" fill=\"#334\" \
             stroke=\"#fff\" stroke-width=\"4\" paint-order=\"stroke\">{label}</text>"
        );
    }
}

/// Places each node in the row below the last one that it follows. Nodes are in the order in which
/// they run, so that an edge to an earlier one leads back.
fn places(graph: &Graph) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::with_capacity(graph.nodes.len());
    for node in 0..graph.nodes.len() {
        let before = graph.edges.iter().filter(|edge| edge.to == node && edge.from < node);
        let row = before.map(|edge| places[edge.from].row + 1).max().unwrap_or(0);
        let column = places.iter().filter(|place| place.row == row).count();
        places.push(Place { row, column });
    }
    places
}
