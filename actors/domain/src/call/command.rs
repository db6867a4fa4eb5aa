//! Runs of programs. There is no shell: an argument is one argument whatever is in it.

use std::sync::Arc;

use serde_json::Value;

use super::text::{UnresolvedTemplate, UnresolvedText, is_variable};
use crate::expression::{CompiledMapping, ExpressionError, Scope, Template};
use crate::failure::AttemptFailure;

/// Prefix of variables that only the server sets.
const OWN_PREFIX: &str = "GREENROOM_";

/// A compiled run.
#[derive(Debug, Clone)]
pub struct CommandCall {
    pub program: Arc<str>,
    pub arguments: Vec<Argument>,
    /// Defaults to the step's `data`.
    pub input: Option<CompiledMapping>,
    pub env: Vec<(Arc<str>, UnresolvedTemplate)>,
    pub cwd: Option<Arc<str>>,
    pub memory_bytes_max: Option<u64>,
    pub output_bytes_max: Option<u64>,
}

/// An argument after the program.
#[derive(Debug, Clone)]
pub enum Argument {
    Literal(String),
    /// Text with values. Unless `may_be_option`, the rendered text must not begin with `-`.
    Template {
        template: Template,
        may_be_option: bool,
    },
}

/// A run with all its values.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRun {
    pub program: Arc<str>,
    pub arguments: Vec<String>,
    /// Written to its standard input as JSON.
    pub input: Arc<Value>,
    pub env: Vec<(Arc<str>, UnresolvedText)>,
    pub cwd: Option<Arc<str>>,
    pub memory_bytes_max: Option<u64>,
    pub output_bytes_max: Option<u64>,
}

/// Returns the problem with the name of an environment variable.
pub fn variable_problem(name: &str) -> Option<&'static str> {
    if !is_variable(name) {
        return Some("is not a valid variable name");
    }
    let is_own = name.starts_with(OWN_PREFIX) || name == "TRACEPARENT";
    is_own.then_some("is set by the server; it cannot be configured")
}

impl Argument {
    /// Compiles the arguments after the program; an error carries the index of its argument.
    pub fn compile_all(sources: &[String]) -> Result<Vec<Self>, (usize, ExpressionError)> {
        let mut is_behind_dashes = false;
        let mut arguments = Vec::with_capacity(sources.len());
        for (index, source) in sources.iter().enumerate() {
            arguments.push(if source.contains("{{") {
                let template = Template::compile(source).map_err(|error| (index, error))?;
                // after `--` nothing is an option, and after a literal the author decided it
                let begins_with_value = source.trim_start().starts_with('{');
                let may_be_option = is_behind_dashes || !begins_with_value;
                Self::Template { template, may_be_option }
            } else {
                is_behind_dashes |= source == "--";
                Self::Literal(source.clone())
            });
        }
        Ok(arguments)
    }

    /// Renders the argument. `key` names it in failures.
    fn render(&self, key: &str, scope: &Scope) -> Result<String, AttemptFailure> {
        match self {
            Self::Literal(text) => Ok(text.clone()),
            Self::Template { template, may_be_option } => {
                let text = template.render(scope);
                let text = text
                    .map_err(|error| AttemptFailure::not_evaluated(&format!("{key}: "), &error))?;
                if !may_be_option && text.starts_with('-') {
                    return Err(AttemptFailure::expression(format!(
                        "{key}: begins with `-`, so the program would read it as an option; \
                         pass the value as input, or put it after `--` or `--name=`"
                    )));
                }
                Ok(text)
            }
        }
    }

    /// Returns the names that it reads, functions included, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let template = match self {
            Self::Literal(_) => None,
            Self::Template { template, .. } => Some(template),
        };
        template.into_iter().flat_map(Template::names)
    }
}

impl CommandCall {
    /// Returns the names that it reads, functions included, unordered and possibly repeated.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let arguments = self.arguments.iter().flat_map(Argument::names);
        let env = self.env.iter().flat_map(|(_, value)| value.names());
        arguments.chain(env).chain(self.input.iter().flat_map(CompiledMapping::names))
    }

    /// Returns the variables of its secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.env.iter().flat_map(|(_, value)| value.secrets())
    }

    /// Makes the run from the values in scope. `data` is its input unless the definition has one.
    pub fn run(&self, scope: &Scope, data: &Arc<Value>) -> Result<CommandRun, AttemptFailure> {
        let argument = |(index, argument): (usize, &Argument)| {
            let key = format!("argv[{}]", index + 1);
            let text = argument.render(&key, scope)?;
            without_nul(text).ok_or_else(|| AttemptFailure::expression(format!("{key}: {NUL}")))
        };
        let variable = |(name, value): &(Arc<str>, UnresolvedTemplate)| {
            let text = value
                .render(scope)
                .map_err(|error| AttemptFailure::not_evaluated(&format!("env.{name}: "), &error))?;
            Ok((Arc::clone(name), text))
        };
        let input = match &self.input {
            Some(input) => {
                let input = input.evaluate(scope);
                let failed = |error| AttemptFailure::not_evaluated("input: ", &error);
                Arc::new(input.map_err(failed)?)
            }
            None => Arc::clone(data),
        };
        Ok(CommandRun {
            program: Arc::clone(&self.program),
            arguments: self
                .arguments
                .iter()
                .enumerate()
                .map(argument)
                .collect::<Result<_, AttemptFailure>>()?,
            input,
            env: self.env.iter().map(variable).collect::<Result<_, AttemptFailure>>()?,
            cwd: self.cwd.clone(),
            memory_bytes_max: self.memory_bytes_max,
            output_bytes_max: self.output_bytes_max,
        })
    }
}

const NUL: &str = "contains a NUL byte, which an argument cannot contain";

fn without_nul(text: String) -> Option<String> {
    (!text.contains('\0')).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(arguments: &[&str]) -> CommandCall {
        let sources: Vec<_> = arguments.iter().map(|&it| it.to_owned()).collect();
        CommandCall {
            program: "jq".into(),
            arguments: Argument::compile_all(&sources).unwrap(),
            input: None,
            env: vec![(
                "KEY".into(),
                UnresolvedTemplate::compile("{{ data }}/secret:KEY").unwrap(),
            )],
            cwd: None,
            memory_bytes_max: None,
            output_bytes_max: None,
        }
    }

    fn arguments(sources: &[&str], data: Value) -> Result<Vec<String>, String> {
        let data = Arc::new(data);
        let scope = Scope::new().with("data", Arc::clone(&data));
        let run = call(sources).run(&scope, &data).map_err(|failure| failure.message)?;
        assert_eq!(run.input, data);
        Ok(run.arguments)
    }

    #[test]
    fn a_value_is_always_one_argument() {
        for value in ["", "a b", "a' \"b\"; rm -rf / $(x) `y`\n", "*", "{{ data }}", "é"] {
            let made = arguments(&["-c", "{{ data }}", "--name={{ data }}"], json!(value));
            let named = format!("--name={value}");
            assert_eq!(made.unwrap(), ["-c", value, &named]);
        }
        assert_eq!(arguments(&["{ a: .b }", "{{ data }}"], json!(7)).unwrap(), ["{ a: .b }", "7"]);
    }

    #[test]
    fn a_value_cannot_become_an_option() {
        let refused = arguments(&["{{ data }}"], json!("--output=/etc/passwd")).unwrap_err();
        assert!(refused.starts_with("argv[1]: begins with `-`"), "{refused}");
        assert!(arguments(&["-x", "{{ data }}"], json!("-1")).is_err());
        assert!(arguments(&["{% if true %}{{ data }}{% endif %}"], json!("-1")).is_err());
        assert!(arguments(&["--", "{{ data }}"], json!("-1")).is_ok());
        assert!(arguments(&["--name={{ data }}"], json!("-1")).is_ok());
        assert!(arguments(&["-", "{{ data }}", "--"], json!("-1")).is_err());
        let refused = arguments(&["{{ data }}"], json!("a\0b")).unwrap_err();
        assert_eq!(refused, "argv[1]: contains a NUL byte, which an argument cannot contain");
    }

    #[test]
    fn variables_of_the_server_cannot_be_configured() {
        for (name, fits) in [
            ("TOKEN", true),
            ("_x1", true),
            ("1X", false),
            ("A=B", false),
            ("", false),
            ("GREENROOM_ATTEMPT", false),
            ("TRACEPARENT", false),
        ] {
            assert_eq!(variable_problem(name).is_none(), fits, "{name:?}");
        }
    }

    #[test]
    fn a_command_lists_its_names_and_secrets() {
        let call = call(&["{{ input.a }}", "x"]);
        let mut names: Vec<_> = call.names().collect();
        names.sort_unstable();
        assert_eq!(names, ["data", "input"]);
        assert_eq!(call.secrets().collect::<Vec<_>>(), ["KEY"]);
    }
}
