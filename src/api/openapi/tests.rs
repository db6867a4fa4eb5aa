//! The whole document: complete, valid, deterministic.

use std::collections::BTreeSet;
use std::sync::Arc;

use greenroom_actors::agent::tool::{ToolBody, ToolDefinition};
use greenroom_actors::ports::model::ToolSpec;

use super::*;
use crate::api::access::{AccessRule, DefaultAccess, Pattern};
use crate::api::catalogue::{Answer, Likeness, ROUTES, RouteName};
use crate::config::Config;
use crate::made_page;

const CONFIG: &str = r##"
[models.offline]
provider = "rehearsal"

[agents.assistant]
description = "Answers"
model = "offline"

[workflows.order]
name = "Order"
purpose = "Takes orders"
input_schema = { type = "object", required = ["item"], properties = { item = { "$ref" = "#/$defs/item" } }, "$defs" = { item = { type = "string", minLength = 2 } } }
resume_schema = { type = "object", required = ["approved"], properties = { approved = { type = "boolean" } } }
steps = [{ id = "one", map = "data" }]

[workflows.any]
steps = [{ id = "one", map = "data" }]

[workflows.number]
input_schema = { type = "integer" }
steps = [{ id = "one", map = "data" }]
"##;

fn registry(config: &str) -> Registry {
    let Config { workflows, agents, .. } = Config::parse(config, "config.toml").unwrap();
    let spec = ToolSpec {
        name: "add".into(),
        description: "Adds".into(),
        parameters: json!({ "type": "object", "required": ["n"],
                            "properties": { "n": { "type": "number" } } }),
    };
    let tool = ToolDefinition::new(spec, ToolBody::Workflow("order".into())).unwrap();
    Registry {
        workflows,
        agents: agents.into_iter().map(|(id, agent)| (id, Arc::new(agent))).collect(),
        tools: [("add".to_owned(), Arc::new(tool))].into(),
        ..Registry::default()
    }
}

fn written(policy: Option<&AccessPolicy>) -> Value {
    let catalogue = Catalogue::default();
    let registry = registry(CONFIG);
    document(Source { policy, ..source(&catalogue, &registry) })
}

/// Source of a server without authentication.
fn source<'a>(catalogue: &'a Catalogue, registry: &'a Registry) -> Source<'a> {
    Source { catalogue, policy: None, takes_api_keys: false, registry }
}

/// Collects all references of the document.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(target)) = object.get("$ref") {
                found.insert(target.clone());
            }
            object.values().for_each(|inner| references(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| references(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Creates a validator of a schema with references into the document.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut schema = schema.clone();
    schema["components"] = document["components"].clone();
    jsonschema::validator_for(&schema).unwrap()
}

fn body_of<'a>(document: &'a Value, path: &str) -> &'a Value {
    &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
}

/// Returns the name of a parameter in a path.
fn name_of(segment: &str) -> Option<&str> {
    if segment == "*" { Some("tail") } else { segment.strip_prefix(':') }
}

#[test]
fn every_route_is_described_with_its_answers_and_refusals() {
    let document = written(None);
    let mut ids = BTreeSet::new();
    for row in ROUTES.iter() {
        let method = row.method.as_str().to_ascii_lowercase();
        let operation = &document["paths"][templated(&row.path)][method];
        let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{row} is missing"));
        assert!(ids.insert(id.to_owned()), "{id} is there twice");
        assert_eq!(operation["summary"], json!(row.summary), "{row}");
        assert_eq!(operation["tags"], json!([row.tag.as_str()]), "{row}");
        assert_eq!(operation["x-rate-limit-class"], row.class.as_str(), "{row}");
        let responses = operation["responses"].as_object().unwrap();
        let good = responses.keys().find(|status| status.as_str() < "300").unwrap();
        let content = &responses[good]["content"];
        let expected = match row.answer {
            Answer::Json => "application/json",
            Answer::Events => "text/event-stream",
            Answer::Text => "text/",
            Answer::WebSocket => {
                assert_eq!((good.as_str(), content), ("101", &Value::Null), "{row}");
                continue;
            }
        };
        let kinds = content.as_object().unwrap_or_else(|| panic!("{row} gives nothing"));
        assert!(kinds.keys().any(|kind| kind.starts_with(expected)), "{row}: {kinds:?}");
        assert!(responses.contains_key("500"), "{row}");
        let named: Vec<_> = row.path.split('/').filter_map(name_of).collect();
        let parameters = operation["parameters"].as_array().unwrap();
        let in_path: Vec<_> =
            parameters.iter().filter(|it| it["in"] == "path").map(|it| &it["name"]).collect();
        assert!(named.iter().all(|name| in_path.contains(&&json!(name))), "{row}: {in_path:?}");
        assert_eq!(named.len(), in_path.len(), "{row}");
    }
}

/// The console's client is typed by the document of a server without workflows, agents and tools.
#[test]
fn the_document_of_the_console() {
    let (catalogue, registry) = (Catalogue::default(), Registry::default());
    let document = document(source(&catalogue, &registry));
    let made = serde_json::to_string_pretty(&document).unwrap() + "\n";
    made_page::compare("console/openapi.json", &made, "the_document_of_the_console");
}

#[test]
fn references_have_targets_and_schemas_are_valid() {
    let document = written(None);
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 100, "{}", found.len());
    for target in &found {
        let pointer = target.strip_prefix('#').unwrap_or_else(|| panic!("{target} leads out"));
        assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in schemas.keys() {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        validator(&document, &schema);
    }
}

/// Checks all examples beside or in schemas.
fn check_examples(document: &Value, place: &Value, path: &str, checked: &mut usize) {
    let mut check = |schema: &Value, example: &Value| {
        let error = validator(document, schema).validate(example).err().map(|it| it.to_string());
        assert_eq!(error, None, "{path}: {example}");
        *checked += 1;
    };
    match place {
        Value::Object(object) => {
            if let Some(schema) = object.get("schema") {
                object.get("example").into_iter().for_each(|example| check(schema, example));
                let examples = object.get("examples").and_then(Value::as_object);
                let examples = examples.into_iter().flat_map(Map::values);
                examples.for_each(|example| check(schema, &example["value"]));
            }
            if let Some(Value::Array(examples)) = object.get("examples") {
                examples.iter().for_each(|example| check(place, example));
            }
            for (key, inner) in object {
                check_examples(document, inner, &format!("{path}/{key}"), checked);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                check_examples(document, inner, &format!("{path}/{index}"), checked);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_example_matches_its_schema() {
    let shipped = registry(include_str!("../../../config.toml"));
    let own = registry(CONFIG);
    for registry in [shipped, own] {
        let document = document(source(&Catalogue::default(), &registry));
        let mut checked = 0;
        check_examples(&document, &document, "", &mut checked);
        assert!(checked > 100, "{checked}");
    }
}

#[test]
fn plain_schemas_of_agent_bodies_accept_all_strict_bodies() {
    let document = written(None);
    let strict: Value =
        serde_json::from_str(include_str!("../../../tests/openapi/strict.json")).unwrap();
    let text = json!({ "type": "text", "text": "hi" });
    let call = json!({ "type": "tool-call", "toolCallId": "c", "toolName": "add", "input": {} });
    let inputs = [
        json!("hi"),
        json!([{ "role": "user", "parts": [text] }]),
        json!([{ "role": "user", "content": "hi" }]),
        json!([{ "role": "user", "content": [text] }, { "role": "assistant", "content": [call] }]),
    ];
    let mut narrowed = document.clone();
    for (name, schema) in strict.as_object().unwrap() {
        assert_eq!(document["components"]["schemas"][name]["title"], json!(name));
        narrowed["components"]["schemas"][name] = schema.clone();
    }
    for input in inputs {
        let body = json!({ "input": input, "schema": {}, "options": { "userId": "u" } });
        for name in ["GenerationRequest", "ObjectRequest", "ChatRequest"] {
            let schema = parts::reference("schemas", name);
            for document in [&document, &narrowed] {
                assert!(validator(document, &schema).is_valid(&body), "{name}: {body}");
            }
        }
    }
}

#[test]
fn the_document_is_deterministic() {
    assert_eq!(written(None).to_string(), written(None).to_string());
}

#[test]
fn a_workflow_has_a_path_with_its_own_schema() {
    let document = written(None);
    let body = body_of(&document, "/workflows/order/execute");
    let schema = validator(&document, &body["schema"]);
    let rows = [
        (json!({ "input": { "item": "tea" } }), true),
        (json!({ "input": { "item": "t" } }), false),
        (json!({ "input": {} }), false),
        (json!({ "input": 5 }), false),
        (json!({}), false),
        (json!({ "input": { "item": "tea" }, "options": { "executionId": ".." } }), false),
        (json!({ "input": { "item": "tea" }, "options": { "userId": null } }), true),
    ];
    for (body, is_valid) in rows {
        assert_eq!(schema.is_valid(&body), is_valid, "{body}");
    }
    assert!(schema.is_valid(&body["example"]), "{}", body["example"]);
    let stream = body_of(&document, "/workflows/order/stream");
    assert_eq!(stream["schema"], body["schema"]);
    let resume = body_of(&document, "/workflows/order/executions/{executionId}/resume");
    let schema = validator(&document, &resume["schema"]);
    assert!(schema.is_valid(&json!({ "resumeData": { "approved": true } })));
    assert!(!schema.is_valid(&json!({ "resumeData": { "approved": 1 } })));
    assert!(!schema.is_valid(&json!({})) && resume["schema"]["required"] == json!(["resumeData"]));
    let any = validator(&document, &body_of(&document, "/workflows/any/execute")["schema"]);
    assert!(any.is_valid(&json!({ "input": {} })) && !any.is_valid(&json!({ "input": [] })));
    let number = body_of(&document, "/workflows/number/execute");
    assert!(validator(&document, &number["schema"]).is_valid(&json!({ "input": 5 })));
}

#[test]
fn tools_and_agents_have_paths_and_examples() {
    let document = written(None);
    let body = body_of(&document, "/tools/add/execute");
    let schema = validator(&document, &body["schema"]);
    assert!(schema.is_valid(&body["example"]));
    assert!(!schema.is_valid(&json!({ "input": { "n": "1" } })));
    let ids = &document["components"]["schemas"]["AgentId"];
    assert_eq!((&ids["examples"], &ids["enum"]), (&json!(["assistant"]), &Value::Null));
    assert!(ids["description"].as_str().unwrap().contains("Answers"));
}

#[test]
fn an_operation_declares_its_access_requirements() {
    let role = AccessRule {
        route: Pattern::parse("POST /updates").unwrap(),
        roles: Arc::new(["admin".to_owned()]),
    };
    let policy = AccessPolicy {
        default: DefaultAccess::Spec,
        public: vec![Pattern::parse("POST /workflows/order/execute").unwrap()],
        rules: vec![role],
        owner_roles: None,
    };
    let private = AccessPolicy { default: DefaultAccess::Private, ..AccessPolicy::default() };
    for policy in [None, Some(&policy), Some(&private)] {
        let document = written(policy);
        for row in ROUTES.iter() {
            let method = row.method.as_str().to_ascii_lowercase();
            let operation = &document["paths"][templated(&row.path)][method];
            let needs_token = policy.is_some_and(|it| it.gate(row).needs_token(&row.path));
            let security = if needs_token { json!([{ "bearerAuth": [] }]) } else { Value::Null };
            assert_eq!(operation["security"], security, "{row}");
            assert_eq!(operation["responses"]["401"].is_object(), needs_token, "{row}");
        }
    }
    let document = written(Some(&policy));
    let open = &document["paths"]["/workflows/order/execute"]["post"];
    assert!(open["security"].is_null() && open["responses"]["401"].is_null());
    let refused = document["paths"]["/updates"]["post"]["responses"]["403"]["$ref"].as_str();
    let refused = document.pointer(refused.unwrap().trim_start_matches('#')).unwrap();
    let text = refused["description"].as_str().unwrap();
    assert!(text.contains("`role_missing`: One of these roles is required: admin"), "{text}");
}

#[test]
fn api_keys_are_declared_if_they_are_accepted() {
    let catalogue = Catalogue::default();
    let registry = registry(CONFIG);
    let policy = AccessPolicy::default();
    for takes_api_keys in [false, true] {
        let source =
            Source { policy: Some(&policy), takes_api_keys, ..source(&catalogue, &registry) };
        let document = document(source);
        let scheme = &document["components"]["securitySchemes"]["apiKeyAuth"];
        let security = &document["paths"]["/agents/{id}/text"]["post"]["security"];
        if takes_api_keys {
            assert_eq!(scheme, &json!({ "type": "apiKey", "in": "header", "name": "x-api-key" }));
            assert_eq!(security, &json!([{ "bearerAuth": [] }, { "apiKeyAuth": [] }]));
        } else {
            assert_eq!((scheme, security), (&Value::Null, &json!([{ "bearerAuth": [] }])));
        }
    }
}

#[test]
fn disabled_routes_are_missing_and_added_ones_are_present() {
    let mut catalogue = Catalogue::default().without_ui();
    let name = RouteName::Custom(0);
    let path = "/open/:what/*".into();
    let summary = "Opens".into();
    catalogue.add(Route { path, name, summary, tag: Tag::Custom, ..ROUTES[0].clone() }).unwrap();
    let files = ROUTES.iter().find(|row| row.answer == Answer::Text).unwrap().clone();
    let (path, name) = ("/files/*".into(), RouteName::Custom(1));
    catalogue.add(Route { path, name, tag: Tag::Custom, ..files }).unwrap();
    let registry = Registry::default();
    let document = document(source(&catalogue, &registry));
    assert!(document["paths"]["/ui"].is_null() && document["paths"]["/ui/{file}"].is_null());
    let custom = &document["paths"]["/open/{what}/{tail}"]["post"];
    assert_eq!((&custom["summary"], &custom["tags"]), (&json!("Opens"), &json!(["Custom"])));
    assert_eq!(custom["parameters"].as_array().unwrap().len(), 2);
    assert!(custom["responses"]["default"]["content"]["*/*"].is_object(), "{custom}");
    let responses = document["paths"]["/files/{tail}"]["get"]["responses"].as_object().unwrap();
    let statuses: BTreeSet<_> = responses.keys().map(String::as_str).collect();
    let expected = ["200", "206", "304", "308", "400", "403", "404", "412", "416", "500"];
    assert_eq!(statuses, expected.into());
}

#[test]
fn added_routes_are_described_like_the_routes_they_repeat() {
    let mut catalogue = Catalogue::default();
    let rows = [
        ("/orders", RouteName::ExecuteWorkflow, "order", false),
        ("/hooks/order", RouteName::ExecuteWorkflow, "order", true),
        ("/live", RouteName::StreamWorkflow, "any", false),
        ("/ask", RouteName::GenerateText, "assistant", false),
    ];
    for (index, (path, name, id, takes_input_alone)) in rows.into_iter().enumerate() {
        let like = Likeness { name, id: id.into(), takes_input_alone };
        let row = ROUTES.iter().find(|row| row.name == name).unwrap().clone();
        let (path, name, tag) = (path.into(), RouteName::Custom(index), Tag::Custom);
        catalogue.add(Route { path, name, tag, like: Some(like), ..row }).unwrap();
    }
    let registry = registry(CONFIG);
    let document = document(source(&catalogue, &registry));
    let paths = &document["paths"];
    let schema = |path: &str| {
        let body = &paths[path]["post"]["requestBody"];
        body["content"]["application/json"]["schema"].clone()
    };
    let typed = schema("/workflows/order/execute");
    assert_eq!(schema("/orders"), typed);
    assert_eq!(schema("/hooks/order"), typed["properties"]["input"]);
    assert_eq!(schema("/live"), schema("/workflows/any/stream"));
    assert_eq!(schema("/ask"), schema("/agents/{id}/text"));
    for (path, ..) in rows {
        let operation = &paths[path]["post"];
        let parameters = operation["parameters"].as_array().unwrap();
        assert!(parameters.iter().all(|it| it["in"] != "path"), "{path}: {parameters:?}");
        assert_eq!(operation["tags"], json!(["Custom"]), "{path}");
        assert!(operation["responses"]["200"].is_object(), "{path}: {operation}");
        assert!(!operation["responses"].to_string().contains("not_found"), "{path}");
    }
}

#[test]
fn a_thousand_workflows_fit_into_a_few_megabytes() {
    let mut config = String::new();
    for number in 0..1000 {
        config.push_str(&format!(
            "[workflows.w{number}]\ninput_schema = {{ type = \"object\" }}\n\
             steps = [{{ id = \"one\", map = 1 }}]\n"
        ));
    }
    let catalogue = Catalogue::default();
    let registry = registry(&config);
    let document = document(source(&catalogue, &registry));
    let bytes = document.to_string().len();
    assert!((1_000_000..5_000_000).contains(&bytes), "{bytes}");
    assert!(document["paths"]["/workflows/w999/stream"]["post"].is_object());
}
