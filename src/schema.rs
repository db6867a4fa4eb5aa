//! JSON Schemas of Rust types, as workflows and tools take them.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the schema of values that are read as `T`: inputs, resume data.
///
/// ```
/// use greenroom::schema;
/// use greenroom::schemars::{self, JsonSchema};
///
/// #[derive(JsonSchema)]
/// struct Approval {
///     /// May the order be paid?
///     approved: bool,
/// }
///
/// let schema = schema::of::<Approval>();
/// assert_eq!(schema["properties"]["approved"]["type"], "boolean");
/// assert_eq!(schema["required"], serde_json::json!(["approved"]));
/// ```
pub fn of<T: JsonSchema>() -> Value {
    made::<T>(SchemaSettings::draft2020_12())
}

/// Returns the schema of values that are written from a `T`: outputs, payloads.
pub fn of_output<T: JsonSchema>() -> Value {
    made::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// Returns the schema of values that are read as `T`, without references as far as possible: some
/// models and forms do not follow them.
pub(crate) fn inline<T: JsonSchema>() -> Value {
    made::<T>(SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true))
}

fn made<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.meta_schema = None);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}
