//! Tables: cells below each other, shortened to the width of a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Space between columns.
const GAP: usize = 2;

/// Narrowest width that a column is shortened to: the longest status.
const COLUMN_MIN: usize = 9;

/// Length of a time as the API writes it, `2026-11-28T08:05:09.123Z`.
const TIME_LEN: usize = 24;

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

    /// Returns the lines of the table; without a width they are as long as their cells. Where they do
    /// not fit, times lose year and fractions, and columns that find no room are left out.
    pub(super) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let mut columns: Vec<_> = (0..N).map(|n| self.column(n)).collect();
        if let Some(room) = width.filter(|room| total(&columns) > *room) {
            columns.iter_mut().for_each(Column::shorten_times);
            while columns.len() > 1 && total_min(&columns) > room {
                let times = columns.iter().filter(|column| column.has_times).count();
                let last_time = columns.iter().rposition(|column| column.has_times);
                columns.remove(last_time.filter(|_| times > 1).unwrap_or(columns.len() - 1));
            }
            shrink(&mut columns, room);
        }
        (0..=self.rows.len()).map(|n| line(&columns, n)).collect()
    }

    fn column(&self, n: usize) -> Column {
        let head = self.head[n].to_owned();
        let cells: Vec<_> =
            std::iter::once(head).chain(self.rows.iter().map(|row| row[n].clone())).collect();
        let has_times = cells.iter().any(|cell| is_time(cell));
        let width = widest(&cells);
        Column { cells, width, has_times, has_ids: n == 0 }
    }
}

/// A column: its head and its cells.
#[derive(Debug)]
struct Column {
    cells: Vec<String>,
    width: usize,
    has_times: bool,
    /// The first column has the ids that other commands take.
    has_ids: bool,
}

impl Column {
    fn shorten_times(&mut self) {
        for cell in self.cells.iter_mut().filter(|cell| is_time(cell)) {
            *cell = format!("{} {}", &cell[5..10], &cell[11..19]);
        }
        self.width = widest(&self.cells);
    }

    /// Returns the width that it needs to be of use.
    fn min(&self) -> usize {
        if self.has_ids || self.has_times { self.width } else { self.width.min(COLUMN_MIN) }
    }
}

fn is_time(cell: &str) -> bool {
    cell.len() == TIME_LEN && cell.is_ascii() && cell.as_bytes()[10] == b'T' && cell.ends_with('Z')
}

fn widest(cells: &[String]) -> usize {
    cells.iter().map(|cell| cell.width()).max().unwrap_or(0)
}

fn total(columns: &[Column]) -> usize {
    let widths: usize = columns.iter().map(|column| column.width).sum();
    widths + GAP * columns.len().saturating_sub(1)
}

fn total_min(columns: &[Column]) -> usize {
    let widths: usize = columns.iter().map(Column::min).sum();
    widths + GAP * columns.len().saturating_sub(1)
}

/// Shortens the widest columns until all of them fit.
fn shrink(columns: &mut [Column], room: usize) {
    while total(columns) > room {
        let shrinking = columns.iter_mut().filter(|column| column.width > column.min());
        let Some(widest) = shrinking.max_by_key(|column| column.width) else { return };
        widest.width -= 1;
    }
}

fn line(columns: &[Column], n: usize) -> String {
    let mut line = String::new();
    for Column { cells, width, .. } in columns {
        let shown = shortened(&cells[n], *width);
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
        assert_eq!(table().lines(Some(22))[2], "bb-bb  漢字  a long t…");
        assert_eq!(table().lines(Some(20))[2], "bb-bb  漢字", "what finds no room is left out");
        assert_eq!(table().lines(Some(1))[2], "bb-bb");
        let mut ids = Table::new(["ID", "ABOUT"]);
        ids.row(["x".repeat(20), "y".repeat(20)]);
        assert_eq!(ids.lines(Some(32))[1], format!("{}  {}…", "x".repeat(20), "y".repeat(9)));
    }

    #[test]
    fn times_are_shortened_before_they_are_left_out() {
        let mut table = Table::new(["ID", "STATUS", "STARTED", "ENDED", "ABOUT"]);
        let (began, ended) = ("2026-11-28T08:05:09.123Z", "2026-11-28T08:05:11.456Z");
        table.row(["x-1", "completed", began, ended, "a text"].map(str::to_owned));
        for (width, expected) in [
            (80, "x-1  completed  2026-11-28T08:05:09.123Z  2026-11-28T08:05:11.456Z  a text"),
            (60, "x-1  completed  11-28 08:05:09  11-28 08:05:11  a text"),
            (40, "x-1  completed  11-28 08:05:09  a text"),
            (32, "x-1  completed  11-28 08:05:09"),
        ] {
            assert_eq!(table.lines(Some(width))[1], expected, "{width}");
        }
    }

    #[test]
    fn wide_letters_are_not_cut_in_half() {
        for (width, expected) in [(4, "漢字"), (3, "漢…"), (2, "…"), (1, "…")] {
            assert_eq!(shortened("漢字", width), expected, "{width}");
        }
    }
}
