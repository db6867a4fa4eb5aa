//! Parts of tools, compiled and checked alike whether a file or Rust code has them.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::agent::Approval;
use greenroom_actors::domain::assignment::ASSIGNEES_MAX;
use greenroom_actors::domain::call::{
    CommandCall, HttpCall, UnresolvedTemplate, UrlTemplate, header_problem,
};
use greenroom_actors::domain::definition::{CommandBody, HttpBody, HttpMethod, Mapping};
use greenroom_actors::domain::expression::{CompiledMapping, Expression, Template};
use greenroom_actors::domain::plan::{Form, compile_command, constant_condition, format_remarks};
use serde_json::Value;

use crate::config::calls::plain_secret_problem;
use crate::config::entry::duration_problem;
use crate::config::problem::{ConfigProblem, Spot};
use crate::config::secret::names_secret;
use crate::config::texts::{TextScope, remark_at};

/// Compiles parts of one tool, and reports what is wrong with them.
pub(crate) struct Parts<'a> {
    pub(crate) scope: &'a TextScope,
    /// Returns the place of keys inside the tool.
    pub(crate) spot: &'a dyn Fn(&[String]) -> Spot,
    pub(crate) report: &'a dyn Fn(ConfigProblem),
}

/// Keys from the tool to a value.
type Keys<'k> = &'k [&'k str];

impl Parts<'_> {
    /// Reports an error at a place.
    pub(crate) fn refuse(&self, keys: Keys<'_>, message: impl Into<String>) {
        (self.report)(self.at(keys).error(message));
    }

    /// Compiles a call of another server.
    pub(crate) fn http(&self, body: &HttpBody) -> Option<HttpCall> {
        let HttpBody { method, url, headers, query, body } = body;
        self.refuse_secrets(&["url"], &Value::from(url.as_str()));
        query.iter().for_each(|(key, it)| self.refuse_secrets(&["query", key], &it.0));
        body.iter().for_each(|body| self.refuse_secrets(&["body"], &body.0));
        let url = self.url(url);
        let headers: Vec<_> =
            headers.iter().map(|(name, written)| self.header(name, written)).collect();
        let query: Vec<_> = query.iter().map(|(key, it)| self.query(key, &it.0)).collect();
        let body = body.as_ref().map(|body| {
            self.check_method(Some(*method));
            self.body(&body.0)
        });
        Some(HttpCall {
            method: *method,
            url: url?,
            headers: headers.into_iter().collect::<Option<_>>()?,
            query: query.into_iter().collect::<Option<_>>()?,
            body: match body {
                Some(body) => Some(body?),
                None => None,
            },
        })
    }

    /// Compiles the URL of a call.
    pub(super) fn url(&self, written: &str) -> Option<UrlTemplate> {
        let compiled = UrlTemplate::compile(written);
        let url = compiled.map_err(|problem| self.refuse(&["url"], problem)).ok()?;
        self.remark(&["url"], written, Form::Template);
        Some(url)
    }

    /// Compiles a header.
    pub(super) fn header(
        &self,
        name: &str,
        written: &str,
    ) -> Option<(Arc<str>, UnresolvedTemplate)> {
        let keys = ["headers", name];
        let value = UnresolvedTemplate::compile(written);
        let value = value.map_err(|error| self.refuse(&keys, error.to_string())).ok();
        self.check_header_name(name);
        if let Some(problem) = plain_secret_problem(name, written) {
            (self.report)(self.at(&keys).warning(problem));
        }
        let value = value?;
        self.remark(&keys, written, Form::Template);
        Some((Arc::from(name.to_ascii_lowercase()), value))
    }

    /// Checks the name of a header.
    pub(super) fn check_header_name(&self, name: &str) {
        if let Some(problem) = header_problem(name) {
            self.refuse(&["headers", name], problem);
        }
    }

    /// Compiles a parameter of the query.
    pub(super) fn query(&self, key: &str, value: &Value) -> Option<(Arc<str>, CompiledMapping)> {
        let keys = ["query", key];
        self.mapping(&keys, value);
        if !matches!(value, Value::String(_) | Value::Bool(_) | Value::Number(_)) {
            self.refuse(&keys, "must be an expression in a string");
            return None;
        }
        let compiled = CompiledMapping::compile(&Mapping(value.clone()));
        Some((Arc::from(key), compiled.ok()?))
    }

    /// Refuses the method of a call that has a body; `None`: one that is refused already.
    pub(super) fn check_method(&self, method: Option<HttpMethod>) {
        if method == Some(HttpMethod::Get) {
            self.refuse(&["body"], "a GET sends no body; method = \"POST\" does");
        }
    }

    /// Compiles the body of a call.
    pub(super) fn body(&self, value: &Value) -> Option<CompiledMapping> {
        self.mapping(&["body"], value);
        CompiledMapping::compile(&Mapping(value.clone())).ok()
    }

    /// Compiles a run of a program.
    pub(crate) fn command(&self, body: &CommandBody) -> Option<CommandCall> {
        let call = match compile_command(body) {
            Ok(call) => call,
            Err(problems) => {
                for problem in problems {
                    (self.report)((self.spot)(&problem.place).error(problem.message));
                }
                return None;
            }
        };
        for (index, argument) in body.argv.iter().enumerate().skip(1) {
            self.remark(&["argv", &index.to_string()], argument, Form::Template);
        }
        if let Some(input) = &body.input {
            self.refuse_secrets(&["input"], &input.0);
            self.mapping(&["input"], &input.0);
        }
        for (name, written) in &body.env {
            self.remark(&["env", name], written, Form::Template);
        }
        Some(call)
    }

    /// Warns of formats that arguments are not checked against.
    pub(crate) fn warn_of_formats(&self, parameters: &Value) {
        for (keys, remark) in format_remarks(parameters) {
            let keys: Vec<_> = ["parameters".to_owned()].into_iter().chain(keys).collect();
            (self.report)(remark_at(remark, &(self.spot)(&keys)));
        }
    }

    /// Refuses a number outside of its bounds.
    pub(crate) fn check_bounds(&self, key: &str, number: u64, bounds: &RangeInclusive<i64>) {
        if !i64::try_from(number).is_ok_and(|number| bounds.contains(&number)) {
            let message = format!("must be from {} to {}", bounds.start(), bounds.end());
            self.refuse(&[key], message);
        }
    }

    /// Refuses a duration that is too short or too long.
    pub(crate) fn check_duration(&self, keys: Keys<'_>, duration: Option<Duration>) {
        if let Some(problem) = duration.and_then(duration_problem) {
            self.refuse(keys, problem);
        }
    }

    /// Checks an approval whose texts compile.
    pub(crate) fn approval(&self, approval: &Approval) {
        if approval.assignees().len() > ASSIGNEES_MAX {
            let message = format!("has more than {ASSIGNEES_MAX} entries");
            self.refuse(&["approval", "to"], message);
        }
        for (key, form, text) in [
            ("when", Form::Expression, approval.condition()),
            ("reason", Form::Template, approval.question()),
        ] {
            text.iter().for_each(|text| self.remark(&["approval", key], text, form));
        }
        let constant = approval.condition().and_then(|when| {
            let (always, never) = (": each call asks, as without `when`", ": no call asks");
            constant_condition(when, always, never)
        });
        if let Some(remark) = constant {
            (self.report)(remark_at(remark, &self.at(&["approval", "when"])));
        }
        if approval.question() == Some("") {
            self.refuse(&["approval", "reason"], "must not be empty");
        }
        self.check_duration(&["approval", "deadline"], approval.time_limit());
        if approval.time_limit().is_none() && approval.timeout_answer().is_some() {
            self.refuse(&["approval", "on_timeout"], "needs a `deadline` beside it");
        }
    }

    /// Checks every string of a value as an expression.
    fn mapping(&self, keys: Keys<'_>, value: &Value) {
        each_text(keys, value, &mut |keys, text| self.remark(keys, text, Form::Expression));
    }

    /// Refuses references to secrets where a reader of a file refuses them.
    fn refuse_secrets(&self, keys: Keys<'_>, value: &Value) {
        each_text(keys, value, &mut |keys, text| {
            if let Some(written) = names_secret(text) {
                self.refuse(keys, format!("`{written}` is allowed in keys and headers only"));
            }
        });
    }

    /// Checks a text: that it compiles, and what it reads.
    fn remark(&self, keys: Keys<'_>, text: &str, form: Form) {
        let refused = match form {
            Form::Expression => Expression::compile(text).err(),
            Form::Template => Template::compile(text).err(),
        };
        match refused {
            Some(error) => self.refuse(keys, error.to_string()),
            None => {
                let found = self.scope.problems(text, form, &self.at(keys));
                found.into_iter().for_each(self.report);
            }
        }
    }

    fn at(&self, keys: Keys<'_>) -> Spot {
        (self.spot)(&keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>())
    }
}

/// Calls a function with every string of a value and the keys to it.
fn each_text(keys: Keys<'_>, value: &Value, see: &mut dyn FnMut(Keys<'_>, &str)) {
    let mut inside = |key: &str, value: &Value| {
        each_text(&keys.iter().copied().chain([key]).collect::<Vec<_>>(), value, see);
    };
    match value {
        Value::String(text) => see(keys, text),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, it)| inside(&index.to_string(), it));
        }
        Value::Object(members) => members.iter().for_each(|(key, it)| inside(key, it)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
