//! Command line of the programs about subscribers.

use crate::calls::Outcome;

/// A number on the command line.
pub(crate) struct Number<'a> {
    pub(crate) name: &'a str,
    /// Starts as the value of the short form.
    pub(crate) value: &'a mut usize,
    /// Value of the long form.
    pub(crate) long: usize,
}

/// Reads the numbers. The long form is that with `--bench`, which cargo passes, except under
/// `cargo test --benches`.
pub(crate) fn read(numbers: &mut [Number<'_>]) -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--bench" {
            numbers.iter_mut().for_each(|number| *number.value = number.long);
            continue;
        }
        let named = argument.strip_prefix("--");
        let number = numbers.iter_mut().find(|number| Some(number.name) == named);
        let number = number.ok_or_else(|| format!("unknown argument {argument}"))?;
        *number.value = arguments.next().ok_or("a value is missing")?.parse()?;
    }
    Ok(())
}
