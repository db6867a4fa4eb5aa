//! Lints of schemas: formats and keywords that are not checked, required keys that are not allowed
//! or probably misspelt.

use serde_json::Value;

use crate::definition::{StepDefinition, StepKind, WorkflowDefinition};
use crate::schema::{
    ForbiddenKey, MisspeltKey, UnknownFormat, UnknownKeyword, forbidden_keys, misspelt_keys,
    unknown_formats, unknown_keywords,
};

use super::remarks::Remark;
use super::{Finding, place_of};

pub(super) fn of_workflow(definition: &WorkflowDefinition) -> Vec<Finding> {
    let WorkflowDefinition { input_schema, suspend_schema, resume_schema, .. } = definition;
    let schemas = [
        ("input_schema", input_schema),
        ("suspend_schema", suspend_schema),
        ("resume_schema", resume_schema),
    ];
    of_schemas(&[], schemas)
}

pub(super) fn of_step(step: &StepDefinition) -> Vec<Finding> {
    let StepDefinition { input_schema, output_schema, suspend_schema, resume_schema, .. } = step;
    let answer = if let StepKind::Agent { schema, .. } = &step.kind { schema } else { &None };
    let schemas = [
        ("input_schema", input_schema),
        ("output_schema", output_schema),
        ("suspend_schema", suspend_schema),
        ("resume_schema", resume_schema),
        ("schema", answer),
    ];
    of_schemas(&place_of(step), schemas)
}

fn of_schemas<'s>(
    place: &[String],
    schemas: impl IntoIterator<Item = (&'static str, &'s Option<Value>)>,
) -> Vec<Finding> {
    let there = schemas.into_iter().filter_map(|(key, schema)| Some((key, schema.as_ref()?)));
    let found = there.flat_map(|(key, schema)| {
        format_remarks(schema).into_iter().map(move |(inside, remark)| {
            let inside = [key.to_owned()].into_iter().chain(inside);
            remark.at(place.iter().cloned().chain(inside).collect())
        })
    });
    found.collect()
}

/// Returns the lints of a schema, each with its keys from the schema down.
pub fn format_remarks(schema: &Value) -> Vec<(Vec<String>, Remark)> {
    let remark = |UnknownFormat { place, name }: UnknownFormat| {
        let message = format!("unknown format `{name}`: it is not checked");
        let known = UnknownFormat::known().iter().copied();
        (place, Remark::warning(message).meant(&name, known))
    };
    let formats = unknown_formats(schema).into_iter().map(remark);
    let forbidden = |ForbiddenKey { place, name, known }: ForbiddenKey| {
        let message = format!("no value is valid: key `{name}` is required but not allowed");
        (place, Remark::warning(message).meant(&name, known.iter().map(String::as_str)))
    };
    let misspelt = |MisspeltKey { place, name, similar }: MisspeltKey| {
        let message = format!("key `{name}` is required but not among the properties");
        (place, Remark::warning(message).meant(&name, [similar.as_str()]))
    };
    formats
        .chain(forbidden_keys(schema).into_iter().map(forbidden))
        .chain(unknown_keywords(schema).into_iter().map(of_keyword))
        .chain(misspelt_keys(schema).into_iter().map(misspelt))
        .collect()
}

fn of_keyword(keyword: UnknownKeyword) -> (Vec<String>, Remark) {
    let UnknownKeyword { place, name, is_like_property } = keyword;
    let instead = match is_like_property {
        true => format!("; a property is written `properties = {{ {name} = {{ … }} }}`"),
        false => String::new(),
    };
    let message = format!("unknown keyword `{name}`: it checks nothing{instead}");
    (place, Remark::warning(message).meant(&name, UnknownKeyword::known()))
}
