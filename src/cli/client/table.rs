//! Tables: cells below each other, shortened to the width of a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Space between columns.
const GAP: usize = 2;

/// Narrowest width that a column is shortened to.
const COLUMN_MIN: usize = 8;

/// Rows below a head.
#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    head: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// Creates an empty table.
    pub(super) fn new(head: [&'static str; N]) -> Self {
        Self { head, rows: Vec::new() }
    }

    /// Adds a row; its cells have no control characters.
    pub(super) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the lines of the table; without a width they are as long as their cells.
    pub(super) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let mut widths = self.head.map(str::len);
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        if let Some(width) = width {
            shrink(&mut widths, width);
        }
        let head = self.head.map(str::to_owned);
        std::iter::once(&head).chain(&self.rows).map(|row| line(row, &widths)).collect()
    }
}

/// Shortens the widest columns until all of them fit. The first one stays: it has the ids that other
/// commands take.
fn shrink<const N: usize>(widths: &mut [usize; N], room: usize) {
    let room = room.saturating_sub(GAP * N.saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().skip(1).max_by_key(|width| **width) else { return };
        if *widest <= COLUMN_MIN {
            return;
        }
        *widest -= 1;
    }
}

fn line<const N: usize>(row: &[String; N], widths: &[usize; N]) -> String {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        let shown = shortened(cell, *width);
        let missing = width.saturating_sub(shown.width());
        line.push_str(&shown);
        line.extend(std::iter::repeat_n(' ', missing + GAP));
    }
    line.truncate(line.trim_end().len());
    line
}

/// Returns a text that is at most this wide, with `…` in place of its end.
pub(super) fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        shown.push(c);
    }
    shown.push('…');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<3> {
        let mut table = Table::new(["ID", "NAME", "ABOUT"]);
        table.row(["a", "Käse", "x"].map(str::to_owned));
        table.row(["bb-bb", "漢字", "a long text about nothing"].map(str::to_owned));
        table
    }

    #[test]
    fn cells_are_below_each_other() {
        let expected =
            ["ID     NAME  ABOUT", "a      Käse  x", "bb-bb  漢字  a long text about nothing"];
        assert_eq!(table().lines(None), expected);
    }

    #[test]
    fn the_widest_column_is_shortened_to_fit() {
        let lines = table().lines(Some(30));
        assert_eq!(lines[2], "bb-bb  漢字  a long text abou…");
        assert!(lines.iter().all(|line| line.width() <= 30), "{lines:?}");
        assert_eq!(table().lines(Some(1))[2], "bb-bb  漢字  a long …");
        let mut ids = Table::new(["ID", "ABOUT"]);
        ids.row(["x".repeat(20), "y".repeat(20)]);
        assert_eq!(ids.lines(Some(30))[1], format!("{}  {}…", "x".repeat(20), "y".repeat(7)));
    }

    #[test]
    fn wide_letters_are_not_cut_in_half() {
        for (width, expected) in [(4, "漢字"), (3, "漢…"), (2, "…"), (1, "…")] {
            assert_eq!(shortened("漢字", width), expected, "{width}");
        }
    }
}
