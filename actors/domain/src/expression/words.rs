//! Names of the engine's filters, tests and functions.

/// Names of filters.
pub const FILTERS: [&str; 47] = [
    "abs",
    "attr",
    "bool",
    "capitalize",
    "chain",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "epoch_ms",
    "escape",
    "first",
    "float",
    "format",
    "fromjson",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "zip",
];

/// Names of tests.
pub const TESTS: [&str; 42] = [
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "safe",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
];

/// Names of functions.
pub const FUNCTIONS: [&str; 3] = ["dict", "fail", "range"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::engine;

    /// Returns the names of one kind from the engine's debug form. Those with a space or a dot are
    /// internal.
    fn shown(kind: &str) -> Vec<String> {
        let engine = format!("{:?}", engine::shared());
        let (_, listed) = engine.split_once(&format!("{kind}: ")).unwrap();
        let listed = &listed[..listed.find(['}', ']']).unwrap()];
        let names = listed.split('"').skip(1).step_by(2);
        names.filter(|name| !name.contains([' ', '.'])).map(str::to_owned).collect()
    }

    #[test]
    fn the_lists_match_the_engine() {
        let sorted = |names: &[&str]| {
            let mut names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(shown("filters"), sorted(&FILTERS));
        assert_eq!(shown("tests"), sorted(&TESTS));
        let mut functions: Vec<_> =
            engine::shared().globals().map(|(name, _)| name.to_owned()).collect();
        functions.sort();
        assert_eq!(functions, sorted(&FUNCTIONS));
    }
}
