//! Expressions and templates: the language of conditions, mappings and prompts.
//!
//! minijinja in strict mode, without files, includes or macros. Undefined values are errors
//! everywhere, results are JSON of limited size, and a scope is read in place: only values that an
//! expression reads are converted.
//!
//! Evaluations charge for the values that they read (see [`super::effort`]); one that exceeds its
//! budget fails.
//!
//! The limits are against data. The author of a definition can still waste memory with templates
//! that grow by their text alone (blocks that capture earlier blocks many times over); definitions
//! are configuration.

mod bare;
mod charged;
mod closure;
mod depth;
mod engine;
mod error;
mod explained;
mod hints;
mod json;
mod mapping;
mod members;
mod operators;
mod parsed;
mod raised;
mod scope;
mod syntax;
mod words;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::sync::Arc;

use minijinja::{Environment, ErrorKind};
use serde_json::Value;

pub use self::closure::{CLOSURE, Closure, ClosureError, Closures, Stated, source_of_closure};
pub use self::error::ExpressionError;
pub use self::explained::hyphenated_step_reference;
pub use self::mapping::CompiledMapping;
pub use self::scope::{Scope, VALUE_BYTES_MAX_DEFAULT};
pub use self::syntax::{Compared, Guard, How, Part, Path, PathKey, Reading, Used, UsedKind};
pub use self::words::{FILTERS, FUNCTIONS, TESTS};

pub(crate) use self::error::{index_step, joined, key_step, shortened};

use self::closure::closure_in;
use self::error::Refusal;
use self::explained::{explained, without_texts};
use self::json::{Allowance, Node, to_json};
use crate::effort;

/// Longest source of an expression.
pub const EXPRESSION_BYTES_MAX: usize = 8 << 10;

/// Longest source of a template.
pub const TEMPLATE_BYTES_MAX: usize = 64 << 10;

/// Bytes of rendered text per step.
const PAGE_BYTES: usize = 64;

const TEMPLATE_NAME: &str = "template";

/// A compiled expression. Cheap to clone.
#[derive(Clone)]
pub struct Expression {
    inner: Arc<CompiledExpression>,
}

struct CompiledExpression {
    source: String,
    code: minijinja::Expression<'static, 'static>,
    names: HashSet<String>,
    /// Name of the closure in place of the code.
    closure: Option<Box<str>>,
}

impl Expression {
    /// Compiles an expression without braces.
    pub fn compile(source: &str) -> Result<Self, ExpressionError> {
        bounded_source(source, EXPRESSION_BYTES_MAX)?;
        bounded_depth(source, true)?;
        let code = engine::shared()
            .compile_expression_owned(
                operators::of_expression(source).unwrap_or_else(|| source.to_owned()),
            )
            .map_err(|error| refused(source, &error, hints::of_expression))?;
        let names = code.undeclared_variables(false);
        let closure = closure_in(source.trim()).map(Box::from);
        let source = source.to_owned();
        Ok(Self { inner: Arc::new(CompiledExpression { source, code, names, closure }) })
    }

    /// Returns the source.
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// Returns true if the expression reads the name.
    pub fn uses(&self, name: &str) -> bool {
        self.inner.names.contains(name)
    }

    /// Evaluates to JSON. Fails on undefined values, also inside arrays and objects, on numbers
    /// that JSON cannot represent, and on results larger than the scope allows.
    pub fn evaluate(&self, scope: &Scope) -> Result<Value, ExpressionError> {
        effort::bounded(|| self.evaluate_within(scope, &mut Allowance::new(scope.bytes_max())))
    }

    /// Evaluates a condition: false, none, zero and empty values are false. Fails on undefined
    /// values.
    pub fn holds(&self, scope: &Scope) -> Result<bool, ExpressionError> {
        let value = effort::bounded(|| self.run(scope))?;
        if value.is_undefined() {
            return Err(self.explained(scope, Refusal::undefined().about(self.source())));
        }
        Ok(value.is_true())
    }

    /// Returns the names that the expression reads, functions included, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.inner.names.iter().map(String::as_str)
    }

    fn evaluate_within(
        &self,
        scope: &Scope,
        allowance: &mut Allowance,
    ) -> Result<Value, ExpressionError> {
        let json = to_json(&self.run(scope)?, allowance);
        self.paid()?;
        json.map_err(|refusal| self.explained(scope, refusal.about(self.source())))
    }

    fn run(&self, scope: &Scope) -> Result<minijinja::Value, ExpressionError> {
        if let Some(name) = &self.inner.closure {
            let value = scope.call(name);
            let value = value.map_err(|error| ExpressionError::closure(self.source(), &error))?;
            return Ok(Node::view(&Arc::new(value)));
        }
        let value = self.inner.code.eval(scope.root());
        value.as_ref().err().into_iter().for_each(bare::pay_for_fuel);
        self.paid()?;
        value.map_err(|error| self.explained(scope, ExpressionError::engine(self.source(), &error)))
    }

    /// Fails if the budget is exceeded, because values were then not read completely.
    fn paid(&self) -> Result<(), ExpressionError> {
        match effort::excess() {
            Some(excess) => Err(ExpressionError::too_costly(self.source(), &excess)),
            None => Ok(()),
        }
    }

    fn explained(&self, scope: &Scope, error: ExpressionError) -> ExpressionError {
        explained(self.source(), scope, || self.reading(), error)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.inner.source).finish()
    }
}

/// A compiled template, text with `{{ }}`. Cheap to clone.
#[derive(Clone)]
pub struct Template {
    inner: Arc<CompiledTemplate>,
}

/// A compiled template. Its environment owns the code, which is dropped with the last clone of the
/// template; the filters are shared by all environments.
struct CompiledTemplate {
    source: String,
    environment: Environment<'static>,
    names: HashSet<String>,
    has_loops: bool,
}

impl Template {
    /// Compiles a template.
    pub fn compile(source: &str) -> Result<Self, ExpressionError> {
        bounded_source(source, TEMPLATE_BYTES_MAX)?;
        bounded_depth(source, false)?;
        let refused = |error: minijinja::Error| refused(source, &error, hints::of_template);
        let mut environment = engine::shared().clone();
        let has_code = source.contains("{%") || operators::may_be_in(source);
        let (rewriting, has_loops) =
            if has_code { syntax::rewriting_and_loops(source) } else { Default::default() };
        let written = operators::rewritten(source, rewriting);
        let written = written.unwrap_or_else(|| source.to_owned());
        environment.add_template_owned(TEMPLATE_NAME, written).map_err(refused)?;
        let names =
            environment.get_template(TEMPLATE_NAME).map_err(refused)?.undeclared_variables(false);
        let source = source.to_owned();
        Ok(Self { inner: Arc::new(CompiledTemplate { source, environment, names, has_loops }) })
    }

    /// Returns the source.
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// Returns the names that the template reads and does not set, functions included, in no
    /// particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.inner.names.iter().map(String::as_str)
    }

    /// Returns true if the template reads the name.
    pub fn uses(&self, name: &str) -> bool {
        self.inner.names.contains(name)
    }

    /// Renders to text; values other than strings as JSON. Fails on undefined values, on too many
    /// steps, and on texts larger than the scope allows.
    pub fn render(&self, scope: &Scope) -> Result<String, ExpressionError> {
        effort::bounded(|| match self.inner.has_loops {
            true => effort::looping(|| self.render_within(scope)),
            false => self.render_within(scope),
        })
    }

    fn render_within(&self, scope: &Scope) -> Result<String, ExpressionError> {
        let source = self.source();
        let mut page = Page { text: Vec::new(), bytes_max: scope.bytes_max() };
        let rendered =
            self.inner.environment.get_template(TEMPLATE_NAME).and_then(|template| {
                template.render_captured_to(scope.root(), &mut page).map(drop)
            });
        rendered.as_ref().err().into_iter().for_each(bare::pay_for_fuel);
        if let Some(excess) = effort::excess() {
            return Err(ExpressionError::too_costly(source, &excess));
        }
        match rendered {
            Ok(()) => String::from_utf8(page.text)
                .map_err(|_| ExpressionError::refused(source, "text is not UTF-8")),
            Err(error) if error.kind() == ErrorKind::WriteFailure => {
                let message = format!("text larger than {} bytes", page.bytes_max);
                Err(ExpressionError::refused(source, &message))
            }
            Err(error) => {
                let error = ExpressionError::engine(source, &error);
                Err(explained(source, scope, || self.reading(), error))
            }
        }
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.inner.source).finish()
    }
}

/// A writer of limited size.
struct Page {
    text: Vec<u8>,
    bytes_max: usize,
}

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_paid = effort::charge_all(1 + bytes.len() / PAGE_BYTES, 1);
        if !is_paid || self.text.len() + bytes.len() > self.bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns true if a value is larger than `bytes_max` as JSON. Stops counting there.
pub fn json_bytes_exceed(value: &Value, bytes_max: usize) -> bool {
    json::Allowance::new(bytes_max).spend_json(value).is_err()
}

/// Returns the size of a value as JSON, in bytes.
pub fn json_bytes(value: &Value) -> usize {
    let mut allowance = json::Allowance::new(usize::MAX);
    // No value is larger than the address space.
    let _ = allowance.spend_json(value);
    usize::MAX - allowance.left()
}

fn bounded_source(source: &str, bytes_max: usize) -> Result<(), ExpressionError> {
    if source.trim().is_empty() && bytes_max == EXPRESSION_BYTES_MAX {
        return Err(ExpressionError::refused(source, "empty expression"));
    }
    if source.len() > bytes_max {
        let message = format!("source longer than {bytes_max} bytes");
        return Err(ExpressionError::refused(source, &message));
    }
    Ok(())
}

fn bounded_depth(source: &str, is_expression: bool) -> Result<(), ExpressionError> {
    if depth::is_too_deep(source, is_expression) {
        let message = format!(
            "chained or nested more than {} deep; split it into several steps",
            depth::DEPTH_MAX
        );
        return Err(ExpressionError::refused(source, &message));
    }
    Ok(())
}

/// Creates the error of a source that does not compile, with a hint if one is known.
fn refused(
    source: &str,
    error: &minijinja::Error,
    hint: impl Fn(&str) -> Option<Cow<'static, str>>,
) -> ExpressionError {
    let mut refused = ExpressionError::engine(source, error);
    if let Some(hint) = hint(source) {
        refused.message.push_str("; ");
        refused.message.push_str(&hint);
    }
    refused
}

/// Names in scope of a step. They end a hyphenated word: `steps.a-steps.b` is a subtraction.
pub const SCOPE_NAMES: [&str; 11] = [
    "data",
    "input",
    "steps",
    "resume",
    "resumed_by",
    "context",
    "user",
    "item",
    "index",
    "execution",
    "error",
];

#[cfg(test)]
mod tests;
