//! Components of the document: schemas and refusals that operations refer to.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::described::RefusalForm;
use super::embed::embedded;
use super::operation::{API_KEY, BEARER};
use super::{bodies, frames, mcp_face, openai, parts};
use crate::api::error::{ApiError, ErrorCode};
use crate::api::wire::problem::{ProblemView, RefusalDetails};

/// Schemas and responses that operations refer to.
#[derive(Debug, Default)]
pub(super) struct Components {
    schemas: BTreeMap<String, Value>,
    /// Names of schemas of the configuration, by key.
    configured: BTreeMap<String, String>,
    /// Names of refusals by their response.
    refusals: BTreeMap<String, String>,
    responses: BTreeMap<String, Value>,
    codes: Vec<&'static str>,
}

impl Components {
    /// Returns a reference to the schema of a type of bodies; adds it with its dependencies.
    pub(super) fn body<T: ToSchema>(&mut self) -> Value {
        self.schemas_of::<T>(|_| {})
    }

    /// Returns a reference to the schema of a type of answers; adds it with its dependencies. An
    /// optional property of an answer is absent, never null.
    pub(super) fn answer<T: ToSchema>(&mut self) -> Value {
        self.schemas_of::<T>(absent_not_null)
    }

    fn schemas_of<T: ToSchema>(&mut self, edit: fn(&mut Value)) -> Value {
        let name = T::name();
        if !self.schemas.contains_key(&*name) {
            let mut found = vec![(name.to_string(), T::schema())];
            T::schemas(&mut found);
            for (name, schema) in found {
                let mut schema = serde_json::to_value(schema).unwrap_or_default();
                edit(&mut schema);
                self.schemas.entry(name).or_insert(schema);
            }
        }
        parts::reference("schemas", &name)
    }

    /// Returns a reference to a schema with this name; adds it if it is new.
    pub(super) fn add(&mut self, name: &str, schema: impl FnOnce() -> Value) -> Value {
        if !self.schemas.contains_key(name) {
            self.schemas.insert(name.to_owned(), schema());
        }
        parts::reference("schemas", name)
    }

    /// Returns a reference to a schema of the configuration; adds it if it is new. `key` identifies
    /// it, and becomes its name with unsupported characters replaced.
    pub(super) fn configured(&mut self, key: &str, schema: &Value) -> Value {
        if let Some(name) = self.configured.get(key) {
            return parts::reference("schemas", name);
        }
        let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let fit: String = key.chars().map(|c| if is_fit(c) { c } else { '_' }).collect();
        let numbered = (2..).map(|number| format!("{fit}.{number}"));
        let mut names = std::iter::once(fit.clone()).chain(numbered);
        let name = names.find(|name| !self.schemas.contains_key(name)).unwrap_or(fit);
        let place = format!("#/components/schemas/{name}");
        self.schemas.insert(name.clone(), embedded(schema, &place));
        let reference = parts::reference("schemas", &name);
        self.configured.insert(key.to_owned(), name);
        reference
    }

    /// Returns a reference to the response for refusals of one status.
    pub(super) fn refusal(
        &mut self,
        status: u16,
        refusals: &[&ApiError],
        form: RefusalForm,
    ) -> Value {
        let mut response = refusal(refusals);
        match form {
            RefusalForm::Envelope => {}
            RefusalForm::Pages => {
                response["content"]["text/html"] = json!({ "schema": { "type": "string" } });
            }
            RefusalForm::OpenAi => response["content"] = openai::failures(refusals, self),
            RefusalForm::JsonRpc => {
                response["content"] = mcp_face::failures();
                let about = "Error code, for programs; not of errors of the protocol.";
                response["headers"]["x-error-code"] =
                    json!({ "description": about, "schema": { "type": "string" } });
            }
        }
        for refusal in refusals {
            let code = refusal.code().as_str();
            if !self.codes.contains(&code) {
                self.codes.push(code);
            }
        }
        let known = self.refusals.len();
        let name = self
            .refusals
            .entry(response.to_string())
            .or_insert_with(|| format!("Refused{status}.{}", known + 1));
        self.responses.entry(name.clone()).or_insert(response);
        parts::reference("responses", name)
    }

    /// Adds the schemas of frames of WebSockets and streams, and of refusals.
    pub(super) fn schema_of_frames(&mut self) {
        frames::add(self);
        let details = self.answer::<RefusalDetails>();
        self.add(FAILURE, || {
            json!({
                "type": "object",
                "description": "A refusal.",
                "required": ["success", "error"],
                "properties": {
                    "success": { "const": false },
                    "error": { "type": "string", "description": "Error text, for people." },
                    "data": details,
                },
            })
        });
        self.answer::<ProblemView<'_>>();
        bodies::add(self);
    }

    pub(super) fn into_value(mut self, takes_api_keys: bool) -> Value {
        self.codes.sort_unstable();
        let mut components = Map::new();
        components.insert("schemas".to_owned(), json!(self.schemas));
        components.insert("responses".to_owned(), json!(self.responses));
        components.insert("parameters".to_owned(), parts::shared_parameters());
        components.insert("headers".to_owned(), parts::shared_headers(&self.codes));
        let bearer = json!({ "type": "http", "scheme": "bearer", "bearerFormat": "JWT" });
        let mut schemes = json!({ BEARER: bearer });
        if takes_api_keys {
            schemes[API_KEY] = json!({ "type": "apiKey", "in": "header", "name": "x-api-key" });
        }
        components.insert("securitySchemes".to_owned(), schemes);
        Value::Object(components)
    }
}

/// Takes null from the optional properties of a schema and of its variants.
fn absent_not_null(schema: &mut Value) {
    for list in ["oneOf", "allOf"] {
        if let Some(Value::Array(variants)) = schema.get_mut(list) {
            variants.iter_mut().for_each(absent_not_null);
        }
    }
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &str| required.as_array().is_some_and(|all| all.contains(&json!(name)));
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let optional = properties.iter_mut().filter(|(name, _)| !is_required(name));
        optional.for_each(|(_, property)| without_null(property));
    }
}

fn without_null(property: &mut Value) {
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = &mut types[..] {
            property["type"] = only.take();
        }
    }
    if let Some(Value::Array(variants)) = property.get_mut("oneOf") {
        variants.retain(|variant| variant["type"] != "null");
        if let [only] = &mut variants[..] {
            *property = only.take();
        }
    }
}

const FAILURE: &str = "Failure";
/// Schema name of [`ProblemView`].
const PROBLEM: &str = "Problem";

/// Creates the response for refusals of one status.
fn refusal(refusals: &[&ApiError]) -> Value {
    let mut headers = vec![("x-error-code", parts::ERROR_CODE)];
    if refusals.iter().any(|refusal| refusal.retry_after_s().is_some()) {
        headers.push(("retry-after", parts::RETRY_AFTER));
    }
    if refusals.iter().any(|refusal| refusal.challenge().is_some()) {
        headers.push(("www-authenticate", parts::CHALLENGE));
    }
    if refusals.iter().any(|refusal| refusal.code() == ErrorCode::UpgradeRequired) {
        headers.extend([
            ("upgrade", parts::UPGRADE),
            ("sec-websocket-version", parts::WEBSOCKET_VERSION),
        ]);
    }
    if refusals.iter().any(|refusal| refusal.code() == ErrorCode::EncodingUnsupported) {
        headers.push(("accept-encoding", parts::ENCODINGS));
    }
    if refusals.iter().any(|refusal| refusal.execution_id().is_some()) {
        headers.extend(parts::ABOUT_EXECUTION);
    }
    if refusals.iter().any(|refusal| refusal.generation_id().is_some()) {
        headers.extend(parts::ABOUT_GENERATION);
    }
    let mut examples = Map::new();
    let mut lines: Vec<String> = Vec::new();
    for refusal in refusals {
        let mut value = json!({ "success": false, "error": refusal.to_string() });
        if let Some(details) = refusal.details() {
            value["data"] = json!(details);
        }
        examples.insert(refusal.code().to_string(), json!({ "value": value }));
        let line = format!("`{}`: {refusal}", refusal.code());
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let content = json!({
        "application/json": {
            "schema": parts::reference("schemas", FAILURE), "examples": examples,
        },
        "application/problem+json": { "schema": parts::reference("schemas", PROBLEM) },
    });
    parts::response(&lines.join("\n\n"), content, &headers)
}
