//! The output of client commands: its form, its colours and its width.

use std::io::{self, IsTerminal as _, Write as _};

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use serde_json::Value;

use super::exit::Failure;
use super::table::{Table, shortened};
use super::text::{compact, plain, pretty};

/// Form of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// For people.
    #[default]
    Table,
    /// One JSON value.
    Json,
    /// One JSON value per line.
    Jsonl,
}

/// Colours of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Red,
    Green,
    Yellow,
    Grey,
}

/// Standard output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    pub(super) form: Form,
    /// True if lines can be drawn anew.
    pub(super) is_live: bool,
    has_colours: bool,
    /// Columns of the terminal; none if the output is no terminal.
    width: Option<usize>,
    /// Rows of it.
    height: Option<usize>,
}

impl Screen {
    /// Looks at standard output. `NO_COLOR`, `CLICOLOR_FORCE` and `TERM=dumb` are honoured.
    pub(super) fn new(form: Form) -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        // the variable `CI`, which the library takes for a terminal with colours, does not make one
        let is_forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let may_colour = !is_dumb || is_forced;
        let has_colours = may_colour && AutoStream::choice(&stdout) != ColorChoice::Never;
        let size = || rustix::termios::tcgetwinsize(&stdout).ok();
        let size = is_terminal.then(size).flatten();
        let known = |cells: u16| (cells > 0).then_some(usize::from(cells));
        let width = size.and_then(|size| known(size.ws_col));
        let height = size.and_then(|size| known(size.ws_row));
        Self { form, is_live: is_terminal && !is_dumb, has_colours, width, height }
    }

    /// Returns a screen that is no terminal.
    #[cfg(test)]
    pub(super) fn plain(form: Form) -> Self {
        Self { form, is_live: false, has_colours: false, width: None, height: None }
    }

    /// Writes a line, which may have colours.
    pub(super) fn line(&self, line: &str) -> Result<(), Failure> {
        self.write(&format!("{line}\n"))
    }

    /// Writes a text without a line end.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        Ok(())
    }

    /// Colours a text, if there are colours.
    pub(super) fn paint(&self, colour: Colour, text: &str) -> String {
        if !self.has_colours {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Grey => 90,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Writes a list: a table, or the items themselves.
    pub(super) fn list<const N: usize>(
        &self,
        items: &[Value],
        head: [&'static str; N],
        cells: impl Fn(&Value) -> [String; N],
        nothing: &str,
    ) -> Result<(), Failure> {
        match self.form {
            Form::Json => self.line(&pretty(&Value::from(items))),
            Form::Jsonl => items.iter().try_for_each(|item| self.line(&compact(item))),
            Form::Table => {
                let mut table = Table::new(head);
                items.iter().for_each(|item| table.row(cells(item)));
                self.table(&table, nothing)
            }
        }
    }

    /// Returns lines without colours as the terminal has room for them, and a last one below.
    pub(super) fn fitted(&self, mut lines: Vec<String>, last: &str) -> Vec<String> {
        let rows = self.height.map(|height| height.saturating_sub(1).max(1));
        if let Some(rows) = rows.filter(|rows| lines.len() > *rows) {
            let left = lines.len() - (rows - 1);
            lines.truncate(rows - 1);
            lines.push(format!("… {left} more lines"));
        }
        lines.push(last.to_owned());
        match self.width {
            Some(width) => lines.iter().map(|line| shortened(line, width)).collect(),
            None => lines,
        }
    }

    /// Returns the lines of a table, as wide as the terminal at most.
    pub(super) fn rows<const N: usize>(&self, table: &Table<N>) -> Vec<String> {
        table.lines(self.width)
    }

    /// Writes a table; `nothing` goes to stderr if it has no rows.
    pub(super) fn table<const N: usize>(
        &self,
        table: &Table<N>,
        nothing: &str,
    ) -> Result<(), Failure> {
        self.rows(table).iter().try_for_each(|line| self.line(line))?;
        if table.is_empty() {
            note(nothing);
        }
        Ok(())
    }

    /// Writes one value: JSON, or what `show` returns for people.
    pub(super) fn value(
        &self,
        value: &Value,
        show: impl Fn(&Value) -> Vec<String>,
    ) -> Result<(), Failure> {
        match self.form {
            Form::Json => self.line(&pretty(value)),
            Form::Jsonl => self.line(&compact(value)),
            Form::Table => show(value).iter().try_for_each(|line| self.line(line)),
        }
    }
}

/// Writes a line to stderr, for people. A closed one is ignored.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{}", plain(line));
}

/// Returns lines with names and values, the values below each other.
pub(super) fn fields(rows: &[(&str, String)]) -> Vec<String> {
    let shown = rows.iter().filter(|(_, value)| !value.is_empty() && value != "-");
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    shown.map(|(name, value)| format!("{name:width$}  {value}")).collect()
}
