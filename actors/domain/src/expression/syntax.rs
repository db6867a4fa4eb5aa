//! Analysis of expressions and templates by their syntax trees, for lints and rewriting.

mod compared;
mod reading;
mod settled;

use std::collections::HashSet;

use minijinja::machinery::{Span, ast, parse, parse_expr};
use minijinja::value::ValueKind;

pub use self::compared::{Compared, How};
pub use self::reading::{Guard, Part, Path, PathKey, Reading, Used, UsedKind};

use super::members::of_chain;
use super::operators::{Operation, Rewriting};
use super::{Expression, FILTERS, TESTS, Template};

/// Filters whose value may be undefined, and tests of that.
const DEFAULTS: [&str; 2] = ["default", "d"];
const PRESENCE: [&str; 2] = ["defined", "undefined"];

/// Filters with the name of a filter or of a test among their arguments, and its index.
const NAMING_FILTERS: [(&str, usize); 1] = [("map", 0)];
const NAMING_TESTS: [(&str, usize); 4] =
    [("select", 0), ("reject", 0), ("selectattr", 1), ("rejectattr", 1)];

impl Expression {
    /// Returns what the expression reads and uses.
    pub fn reading(&self) -> Reading {
        let source = self.source();
        let Ok(tree) = parse_expr(source) else { return Reading::default() };
        let mut walk = Walk::new(source);
        walk.expression(&tree, Guard::None);
        let is_path = path_of(&tree).is_some();
        Reading { is_path, ..walk.done() }
    }
}

impl Template {
    /// Returns what the template reads and uses.
    pub fn reading(&self) -> Reading {
        walked(self.source()).map(Walk::done).unwrap_or_default()
    }
}

struct Walk<'s> {
    source: &'s str,
    reading: Reading,
    /// Names that the text has set so far, by enclosing block.
    own: Vec<HashSet<String>>,
    rewriting: Rewriting,
    has_loops: bool,
}

/// Returns what is to be rewritten in an expression; nothing if it does not parse.
pub(super) fn rewriting_of_expression(source: &str) -> Rewriting {
    let Ok(tree) = parse_expr(source) else { return Rewriting::default() };
    let mut walk = Walk::new(source);
    walk.expression(&tree, Guard::None);
    walk.rewriting
}

/// Returns what is to be rewritten in a template, and true if it has loops.
pub(super) fn rewriting_and_loops(source: &str) -> (Rewriting, bool) {
    let walk = walked(source);
    walk.map_or_else(Default::default, |walk| (walk.rewriting, walk.has_loops))
}

/// Walks a template; `None` if it does not parse.
fn walked(source: &str) -> Option<Walk<'_>> {
    let tree = parse(source, super::TEMPLATE_NAME, Default::default()).ok()?;
    let mut walk = Walk::new(source);
    walk.statement(&tree);
    Some(walk)
}

impl<'s> Walk<'s> {
    fn new(source: &'s str) -> Self {
        Self {
            source,
            reading: Reading::default(),
            own: vec![HashSet::new()],
            rewriting: Rewriting::default(),
            has_loops: false,
        }
    }

    /// Returns the reading. A path that is tested once counts as optional everywhere.
    fn done(self) -> Reading {
        let mut reading = self.reading;
        let tested: Vec<Path> =
            reading.paths.iter().filter(|path| path.is_optional).cloned().collect();
        for path in &mut reading.paths {
            path.is_optional = tested.iter().any(|tested| path.begins_with(tested));
        }
        reading
    }

    fn is_own(&self, name: &str) -> bool {
        self.own.iter().any(|names| names.contains(name))
    }

    fn inside(&mut self, body: impl FnOnce(&mut Self)) {
        self.own.push(HashSet::new());
        body(self);
        self.own.pop();
    }

    fn set(&mut self, target: &ast::Expr<'_>) {
        match target {
            ast::Expr::Var(name) => {
                if let Some(names) = self.own.last_mut() {
                    names.insert(name.id.to_owned());
                }
            }
            ast::Expr::List(items) => items.items.iter().for_each(|item| self.set(item)),
            ast::Expr::Tuple(items) => items.items.iter().for_each(|item| self.set(item)),
            other => self.expression(other, Guard::None),
        }
    }

    fn statements(&mut self, body: &[ast::Stmt<'_>]) {
        body.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &ast::Stmt<'_>) {
        if let ast::Stmt::EmitRaw(raw) = statement {
            let part = Part { text: raw.raw.to_owned(), at: start(raw.span()) };
            self.reading.plain.push(part);
            return;
        }
        match statement {
            ast::Stmt::Template(template) => self.statements(&template.children),
            ast::Stmt::EmitExpr(emitted) => self.expression(&emitted.expr, Guard::None),
            ast::Stmt::ForLoop(repeated) => self.repeated(repeated),
            ast::Stmt::IfCond(choice) => {
                self.expression(&choice.expr, Guard::None);
                self.statements(&choice.true_body);
                self.statements(&choice.false_body);
            }
            ast::Stmt::WithBlock(with) => self.inside(|walk| {
                for (target, value) in &with.assignments {
                    walk.expression(value, Guard::None);
                    walk.set(target);
                }
                walk.statements(&with.body);
            }),
            ast::Stmt::Set(set) => {
                self.expression(&set.expr, Guard::None);
                self.set(&set.target);
            }
            ast::Stmt::SetBlock(set) => {
                set.filter.iter().for_each(|filter| self.expression(filter, Guard::None));
                self.statements(&set.body);
                self.set(&set.target);
            }
            ast::Stmt::AutoEscape(escape) => {
                self.expression(&escape.enabled, Guard::None);
                self.statements(&escape.body);
            }
            ast::Stmt::FilterBlock(block) => {
                self.expression(&block.filter, Guard::None);
                self.statements(&block.body);
            }
            ast::Stmt::Do(done) => self.call(&done.call, done.span()),
            // statements of features that are not compiled in
            _ => {}
        }
    }

    fn repeated(&mut self, repeated: &ast::ForLoop<'_>) {
        self.has_loops = true;
        self.expression(&repeated.iter, Guard::None);
        self.inside(|walk| {
            walk.set(&repeated.target);
            repeated.filter_expr.iter().for_each(|filter| walk.expression(filter, Guard::None));
            if let Some(names) = walk.own.last_mut() {
                names.insert("loop".to_owned());
            }
            walk.statements(&repeated.body);
        });
        self.statements(&repeated.else_body);
    }

    fn expression(&mut self, expression: &ast::Expr<'_>, guard: Guard) {
        if let Some((root, keys)) = path_of(expression) {
            self.path(expression, root, keys, guard);
            return self.computed_keys(expression);
        }
        match expression {
            ast::Expr::Var(_) => {}
            ast::Expr::Const(constant) => {
                if let Some(text) = constant.value.as_str() {
                    let part = Part { text: text.to_owned(), at: start(constant.span()) };
                    self.reading.constants.push(part);
                }
            }
            ast::Expr::Slice(slice) => {
                self.expression(&slice.expr, Guard::None);
                self.all([&slice.start, &slice.stop, &slice.step].into_iter().flatten());
            }
            ast::Expr::UnaryOp(operation) => self.expression(&operation.expr, Guard::None),
            ast::Expr::BinOp(operation) => {
                if let Some(how) = How::of_one(&operation.op) {
                    self.compared(&operation.left, &operation.right, how);
                }
                if matches!(operation.op, ast::BinOpKind::In) {
                    self.tested_key(&operation.left, &operation.right);
                }
                let rewritten = Operation::of(self.source, operation, operation.span());
                self.rewriting.operations.extend(rewritten);
                self.all([&operation.left, &operation.right]);
            }
            ast::Expr::Compare(comparison) => {
                self.expression(&comparison.expr, Guard::None);
                let mut left = &comparison.expr;
                for operation in &comparison.ops {
                    self.compared(left, &operation.expr, How::of_several(&operation.op));
                    if matches!(operation.op, ast::CompareOpKind::In | ast::CompareOpKind::NotIn) {
                        self.tested_key(left, &operation.expr);
                    }
                    self.expression(&operation.expr, Guard::None);
                    left = &operation.expr;
                }
            }
            ast::Expr::IfExpr(choice) => {
                self.all([&choice.test_expr, &choice.true_expr]);
                self.all(&choice.false_expr);
            }
            ast::Expr::Filter(filter) => self.filter(filter),
            ast::Expr::Test(test) => {
                // an unknown test may be a misspelt one of these
                let is_presence = PRESENCE.contains(&test.name);
                let guards = is_presence || !TESTS.contains(&test.name);
                self.guarded(&test.expr, guards.then_some(Guard::Presence), is_presence);
                self.use_after(UsedKind::Test, test.name, &test.expr);
                self.arguments(&test.args);
            }
            ast::Expr::GetAttr(got) => self.expression(&got.expr, Guard::None),
            ast::Expr::GetItem(got) => {
                self.expression(&got.expr, Guard::None);
                self.expression(&got.subscript_expr, Guard::None);
            }
            ast::Expr::Call(call) => self.call(call, call.span()),
            ast::Expr::List(list) => self.all(&list.items),
            ast::Expr::Tuple(tuple) => self.all(&tuple.items),
            ast::Expr::Map(map) => {
                self.all(&map.keys);
                self.all(&map.values);
            }
        }
    }

    fn all<'e, 'x: 'e>(&mut self, expressions: impl IntoIterator<Item = &'e ast::Expr<'x>>) {
        expressions.into_iter().for_each(|expression| self.expression(expression, Guard::None));
    }

    fn path(&mut self, expression: &ast::Expr<'_>, root: &str, keys: Vec<PathKey>, guard: Guard) {
        if !self.is_own(root) {
            let at = start(expression.span());
            let is_optional = guard != Guard::None;
            self.reading.paths.push(Path { root: root.to_owned(), keys, is_optional, guard, at });
        }
    }

    /// Walks the expressions in the brackets of a path.
    fn computed_keys(&mut self, expression: &ast::Expr<'_>) {
        if let ast::Expr::GetItem(got) = expression {
            self.computed_keys(&got.expr);
            if got.subscript_expr.as_const().is_none() {
                self.expression(&got.subscript_expr, Guard::None);
            }
        } else if let ast::Expr::GetAttr(got) = expression {
            self.computed_keys(&got.expr);
        }
    }

    /// Notes `'key' in value`, which tests the presence of the key.
    fn tested_key(&mut self, key: &ast::Expr<'_>, value: &ast::Expr<'_>) {
        let key = key.as_const().and_then(|key| key.as_str().map(str::to_owned));
        if let (Some(key), Some((root, mut keys))) = (key, path_of(value)) {
            keys.push(PathKey::Name(key));
            self.path(value, root, keys, Guard::Key);
        }
    }

    fn filter(&mut self, filter: &ast::Filter<'_>) {
        if let Some(value) = &filter.expr {
            let is_default = DEFAULTS.contains(&filter.name);
            let guards = is_default || !FILTERS.contains(&filter.name);
            self.guarded(value, guards.then_some(Guard::Default), is_default);
            self.use_after(UsedKind::Filter, filter.name, value);
        } else {
            self.use_name(UsedKind::Filter, filter.name, 0);
        }
        self.named_by(filter, &NAMING_FILTERS, UsedKind::Filter);
        self.named_by(filter, &NAMING_TESTS, UsedKind::Test);
        self.arguments(&filter.args);
    }

    /// Walks the value of a filter or a test. `is_lenient`: the engine must not fail on missing
    /// parts of a chain.
    fn guarded(&mut self, value: &ast::Expr<'_>, guard: Option<Guard>, is_lenient: bool) {
        if is_lenient {
            self.rewriting.members.extend(of_chain(self.source, value));
        }
        self.expression(value, guard.unwrap_or(Guard::None));
    }

    /// Notes filters and tests that are arguments of a filter.
    fn named_by(&mut self, filter: &ast::Filter<'_>, naming: &[(&str, usize)], kind: UsedKind) {
        let place = naming.iter().find(|(name, _)| *name == filter.name).map(|(_, place)| *place);
        let argument = place.and_then(|place| filter.args.get(place));
        if let Some(ast::CallArg::Pos(argument)) = argument
            && let Some(name) = argument.as_const().as_ref().and_then(|name| name.as_str())
        {
            self.use_name(kind, name, start(argument.span()));
        }
    }

    fn call(&mut self, call: &ast::Call<'_>, span: Span) {
        match &call.expr {
            ast::Expr::Var(name) if self.is_own(name.id) => {}
            ast::Expr::Var(name) => {
                self.use_name(UsedKind::Function, name.id, start(span));
            }
            ast::Expr::GetAttr(method) => {
                let is_own = path_of(&call.expr).is_some_and(|(root, _)| self.is_own(root));
                if !is_own {
                    self.use_after(UsedKind::Method, method.name, &method.expr);
                }
                self.expression(&method.expr, Guard::None);
            }
            other => self.expression(other, Guard::None),
        }
        self.arguments(&call.args);
    }

    fn arguments(&mut self, arguments: &[ast::CallArg<'_>]) {
        for argument in arguments {
            match argument {
                ast::CallArg::Pos(value)
                | ast::CallArg::Kwarg(_, value)
                | ast::CallArg::PosSplat(value)
                | ast::CallArg::KwargSplat(value) => self.expression(value, Guard::None),
            }
        }
    }

    /// Notes a name that follows a value.
    fn use_after(&mut self, kind: UsedKind, name: &str, value: &ast::Expr<'_>) {
        let end = value.span().end_offset as usize;
        let behind = self.source.get(end..).and_then(|rest| rest.find(name));
        self.use_name(kind, name, end + behind.unwrap_or_default());
    }

    fn use_name(&mut self, kind: UsedKind, name: &str, at: usize) {
        self.reading.used.push(Used { kind, name: name.to_owned(), at });
    }
}

/// Returns the name and the keys of an expression that is a path.
fn path_of<'e>(expression: &'e ast::Expr<'_>) -> Option<(&'e str, Vec<PathKey>)> {
    let ast::Expr::Var(name) = expression else {
        let (inner, key) = match_lookup(expression)?;
        let (root, mut keys) = path_of(inner)?;
        keys.push(key);
        return Some((root, keys));
    };
    Some((name.id, Vec::new()))
}

fn match_lookup<'e, 'x>(expression: &'e ast::Expr<'x>) -> Option<(&'e ast::Expr<'x>, PathKey)> {
    if let ast::Expr::GetAttr(got) = expression {
        return Some((&got.expr, PathKey::Name(got.name.to_owned())));
    }
    let ast::Expr::GetItem(got) = expression else { return None };
    let key = got.subscript_expr.as_const().filter(|key| key.kind() == ValueKind::String);
    let key = key.and_then(|key| key.as_str().map(str::to_owned));
    Some((&got.expr, key.map_or(PathKey::Computed, PathKey::Name)))
}

fn start(span: Span) -> usize {
    span.start_offset as usize
}

#[cfg(test)]
mod tests;
