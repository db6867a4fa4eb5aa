//! Compilation of bodies that call out of the machine.

use std::sync::Arc;

use super::Compiler;
use crate::call::{
    Argument, CommandCall, HttpCall, UnresolvedTemplate, UrlTemplate, header_problem, secrets_of,
    variable_problem,
};
use crate::definition::{Body, CommandBody, HttpBody, HttpMethod, Mapping};
use crate::expression::CompiledMapping;
use crate::plan::{Call, Problem, Work};

/// Checks and compiles a run of a program outside of workflows.
pub fn compile_command(body: &CommandBody) -> Result<CommandCall, Vec<Problem>> {
    let mut compiler = Compiler::default();
    let call = compiler.command(body);
    call.filter(|_| compiler.problems.is_empty()).ok_or(compiler.problems)
}

impl Compiler {
    pub(super) fn body(&mut self, body: &Body) -> Option<Work> {
        match body {
            Body::Map(map) => self.mapping("map", Some(map)).map(Work::Map),
            Body::Run { function, .. } => {
                Some(Work::Call(Call::Function(Arc::from(function.as_str()))))
            }
            Body::Http(body) => {
                let call = self.inside("http", |compiler| compiler.http(body));
                call.map(|call| Work::Call(Call::Http(Box::new(call))))
            }
            Body::Command(body) => {
                let call = self.inside("command", |compiler| compiler.command(body));
                call.map(|call| Work::Call(Call::Command(Box::new(call))))
            }
            Body::Tool { tool, args } => {
                let args = self.optional_mapping("args", args.as_ref())?;
                Some(Work::Call(Call::Tool { tool: Arc::from(tool.as_str()), args }))
            }
        }
    }

    fn inside<T>(&mut self, key: &str, compile: impl FnOnce(&mut Self) -> T) -> T {
        self.place.push(key.to_owned());
        let compiled = compile(self);
        self.place.pop();
        compiled
    }

    fn http(&mut self, body: &HttpBody) -> Option<HttpCall> {
        let HttpBody { method, url, headers, query, body } = body;
        if *method == HttpMethod::Get && body.is_some() {
            self.problem("body", "a GET sends no body; method = \"POST\" does");
        }
        self.hyphen_hint("url", url);
        let url = UrlTemplate::compile(url).map_err(|why| self.problem("url", &why)).ok();
        let header = |(name, value): (&String, &String)| {
            let key = format!("headers.{name}");
            if let Some(problem) = header_problem(name) {
                self.problem(&key, problem);
            }
            Some((Arc::from(name.to_ascii_lowercase()), self.unresolved(&key, value)?))
        };
        let headers: Vec<_> = headers.iter().map(header).collect();
        let value = |(name, value): (&String, &Mapping)| {
            let value = self.mapping(&format!("query.{name}"), Some(value))?;
            Some((Arc::from(name.as_str()), value))
        };
        let query: Vec<_> = query.iter().map(value).collect();
        let body = self.optional_mapping("body", body.as_ref());
        Some(HttpCall {
            method: *method,
            url: url?,
            headers: headers.into_iter().collect::<Option<_>>()?,
            query: query.into_iter().collect::<Option<_>>()?,
            body: body?,
        })
    }

    fn command(&mut self, body: &CommandBody) -> Option<CommandCall> {
        let CommandBody { argv, input, env, cwd, memory_bytes_max, output_bytes_max } = body;
        let Some((program, arguments)) = argv.split_first().filter(|(it, _)| !it.is_empty()) else {
            self.problem("argv", "must name a program");
            return None;
        };
        if program.contains("{{") {
            self.problem("argv.0", "the program cannot be a template: data must not select it");
        }
        for (index, text) in argv.iter().enumerate() {
            if text.contains('\0') {
                self.problem(&format!("argv.{index}"), "contains a NUL byte");
            }
            if !secrets_of(text).0.is_empty() {
                let message = "arguments are visible to all users of the machine; pass a secret in \
                               `env`";
                self.problem(&format!("argv.{index}"), message);
            }
        }
        let arguments = Argument::compile_all(arguments).map_err(|(index, error)| {
            let key = format!("argv.{}", index + 1);
            self.expression_problem(&key, &error, &argv[index + 1]);
        });
        let variable = |(name, value): (&String, &String)| {
            let key = format!("env.{name}");
            if let Some(problem) = variable_problem(name) {
                self.problem(&key, problem);
            }
            Some((Arc::from(name.as_str()), self.unresolved(&key, value)?))
        };
        let env: Vec<_> = env.iter().map(variable).collect();
        let input = self.optional_mapping("input", input.as_ref());
        Some(CommandCall {
            program: Arc::from(program.as_str()),
            arguments: arguments.ok()?,
            input: input?,
            env: env.into_iter().collect::<Option<_>>()?,
            cwd: cwd.as_deref().map(Arc::from),
            memory_bytes_max: *memory_bytes_max,
            output_bytes_max: *output_bytes_max,
        })
    }

    fn unresolved(&mut self, key: &str, source: &str) -> Option<UnresolvedTemplate> {
        self.compiled(key, source, UnresolvedTemplate::compile(source))
    }

    /// Compiles a mapping that may be absent; the outer `None` is a problem.
    fn optional_mapping(
        &mut self,
        key: &str,
        source: Option<&Mapping>,
    ) -> Option<Option<CompiledMapping>> {
        match source {
            None => Some(None),
            Some(source) => self.mapping(key, Some(source)).map(Some),
        }
    }
}
