//! Expressions that are code of the program: `closure('name')`, as the whole of an expression.
//!
//! Workflows built in Rust have them. The definition has only their names, which a process resolves
//! among its own closures when it evaluates, as it does for functions of steps. As with every
//! expression, what comes of one is recorded before anything follows from it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::Scope;
use crate::failure::name::ErrorName;

/// Name of the function in whose place a closure is called.
pub const CLOSURE: &str = "closure";

/// Code in place of an expression. It must not wait, and must have no effect but its result: a
/// decision that was not recorded is made again.
pub type Closure = Arc<dyn Fn(&Scope) -> Result<Value, ClosureError> + Send + Sync>;

/// Failure of a closure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClosureError {
    pub message: String,
    pub stated: Stated,
}

/// Statements of code about its failure, beside the message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stated {
    /// Name of the failure, in place of the kind.
    pub name: Option<ErrorName>,
    /// True if further attempts are ruled out.
    pub is_terminal: bool,
    /// Delay before the next attempt.
    pub retry_after_ms: Option<u64>,
}

impl From<String> for ClosureError {
    fn from(message: String) -> Self {
        Self { message, stated: Stated::default() }
    }
}

/// The closures of a process, by workflow and name. Cheap to clone.
#[derive(Clone, Default)]
pub struct Closures(Arc<HashMap<(String, String), Closure>>);

impl Closures {
    /// Adds a closure of a workflow. Returns false if it replaces one of that name.
    pub fn add(&mut self, workflow: &str, name: &str, closure: Closure) -> bool {
        let key = (workflow.to_owned(), name.to_owned());
        Arc::make_mut(&mut self.0).insert(key, closure).is_none()
    }

    fn get(&self, workflow: &str, name: &str) -> Option<&Closure> {
        self.0.get(&(workflow.to_owned(), name.to_owned()))
    }
}

impl fmt::Debug for Closures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Closures of one workflow.
#[derive(Debug, Clone)]
pub(super) struct OfWorkflow {
    pub(super) closures: Closures,
    pub(super) workflow: Arc<str>,
}

impl OfWorkflow {
    pub(super) fn call(&self, name: &str, scope: &Scope) -> Result<Value, ClosureError> {
        let Self { closures, workflow } = self;
        match closures.get(workflow, name) {
            Some(closure) => closure(scope),
            None => Err(unregistered(name).into()),
        }
    }
}

pub(super) fn unregistered(name: &str) -> String {
    format!("the program has no closure `{name}` for this workflow")
}

/// Returns the expression that calls a closure.
pub fn source_of_closure(name: &str) -> String {
    format!("{CLOSURE}('{name}')")
}

/// Returns the name of the closure that an expression calls.
pub(super) fn closure_in(source: &str) -> Option<&str> {
    let name = source.strip_prefix(CLOSURE)?.strip_prefix("('")?.strip_suffix("')")?;
    (!name.contains(['\'', '\\'])).then_some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::Mapping;
    use crate::expression::{CompiledMapping, Expression};
    use crate::failure::{AttemptFailure, ErrorKind};

    #[test]
    fn a_closure_is_a_whole_expression() {
        let rows = [
            ("closure('a.when')", Some("a.when")),
            ("closure('a') + 1", None),
            ("closure('a') + closure('b')", None),
            ("closure(data)", None),
            ("data", None),
        ];
        for (source, expected) in rows {
            assert_eq!(closure_in(source), expected, "{source}");
        }
        assert_eq!(closure_in(&source_of_closure("a.when")), Some("a.when"));
    }

    #[test]
    fn a_closure_reads_the_scope_and_is_held_to_the_limits_of_values() {
        let mut closures = Closures::default();
        let twice: Closure = Arc::new(|scope| match scope.value("data").and_then(|n| n.as_i64()) {
            Some(n) => Ok(json!(n * 2)),
            None => Err("data is no number".to_owned().into()),
        });
        assert!(closures.add("w", "twice", Arc::clone(&twice)));
        assert!(!closures.add("w", "twice", Arc::clone(&twice)), "registered twice");
        let large: Closure = Arc::new(|_| Ok(json!("x".repeat(100))));
        closures.add("w", "large", large);
        let scope = |data: Value, workflow: &str| {
            let scope = Scope::new().value_bytes_max(50).with("data", Arc::new(data));
            scope.with_closures(closures.clone(), Arc::from(workflow))
        };
        let evaluated = |source: &str, scope: &Scope| {
            Expression::compile(source).unwrap().evaluate(scope).map_err(|error| error.message)
        };
        assert_eq!(evaluated("closure('twice')", &scope(json!(2), "w")), Ok(json!(4)));
        let holds = Expression::compile("closure('twice')").unwrap();
        assert!(!holds.holds(&scope(json!(0), "w")).unwrap(), "zero is false");
        let rows = [
            (scope(json!("x"), "w"), "twice", "data is no number in `closure('twice')`"),
            (scope(json!(2), "v"), "twice", "the program has no closure `twice`"),
            (Scope::new(), "twice", "the program has no closure `twice`"),
            (scope(json!(2), "w"), "large", "larger than 50 bytes"),
        ];
        for (scope, name, expected) in rows {
            let refused = evaluated(&source_of_closure(name), &scope).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn what_a_closure_states_of_its_failure_is_kept() {
        let stated = Stated {
            name: ErrorName::new("sold_out"),
            is_terminal: true,
            retry_after_ms: Some(2000),
        };
        let mut closures = Closures::default();
        let error = ClosureError { message: "no lamps".to_owned(), stated };
        closures.add("w", "fails", Arc::new(move |_| Err(error.clone())));
        let scope = Scope::new().with_closures(closures, Arc::from("w"));
        let inside = Mapping(json!({ "a": [source_of_closure("fails")] }));
        let error = CompiledMapping::compile(&inside).unwrap().evaluate(&scope).unwrap_err();
        assert_eq!(error.to_string(), "a[0]: no lamps in `closure('fails')`");
        let failure = AttemptFailure::not_evaluated("input: ", &error);
        let seen = failure.in_scope("a", 1);
        assert_eq!((&seen["kind"], failure.retry_after_ms), (&json!("sold_out"), Some(2000)));
        let class = failure.class.unwrap();
        assert!(class.is_never_retried());
        assert_eq!(class.kind, ErrorKind::Expression);
    }
}
