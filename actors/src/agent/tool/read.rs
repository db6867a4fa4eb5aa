//! A request as its model reads it: results of tools with pictures, sounds and files are texts for models
//! that take no others.

use std::sync::Arc;

use serde_json::Value;

use super::Content;
use crate::domain::message::{Part, ToolOutcome, ToolResult};
use crate::ports::model::{LanguageModel, ModelRequest};

impl Content {
    /// Returns a request as this model reads it: see [`LanguageModel::reads_content`].
    #[must_use]
    pub fn read_by(model: &dyn LanguageModel, mut request: ModelRequest) -> ModelRequest {
        if model.reads_content() {
            return request;
        }
        let parts = request.messages.iter().flat_map(|message| &message.parts);
        if parts.filter_map(content).next().is_none() {
            return request;
        }
        let messages = Arc::make_mut(&mut request.messages);
        for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
            let Some(described) = content(part).and_then(Content::described) else { continue };
            if let Part::ToolResult(result) = part {
                result.outcome = ToolOutcome::Output(Value::from(described));
            }
        }
        request
    }
}

/// Returns the result of a tool that is a list of parts.
fn content(part: &Part) -> Option<&Value> {
    match part {
        Part::ToolResult(ToolResult { outcome: ToolOutcome::Output(output), .. }) => {
            Some(output).filter(|output| Content::blocks(output).is_some())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::BoxStream;
    use serde_json::json;

    use super::*;
    use crate::ports::model::{Message, ModelError, ModelEvent, Role};

    struct Model {
        reads_content: bool,
    }

    impl LanguageModel for Model {
        fn name(&self) -> &str {
            "model"
        }

        fn is_remote(&self) -> bool {
            false
        }

        fn reads_content(&self) -> bool {
            self.reads_content
        }

        fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
            unreachable!("it is not asked")
        }
    }

    #[test]
    fn results_with_pictures_are_texts_for_models_that_read_no_others() {
        let picture = Content::result([Content::text("a"), Content::image("image/png", [0; 3])]);
        let described = json!("a\n[image: image/png, 3 bytes]");
        for (output, reads_content, expected) in [
            (picture.clone(), true, &picture),
            (picture.clone(), false, &described),
            (json!({ "n": 1 }), false, &json!({ "n": 1 })),
        ] {
            let result = |outcome| {
                Part::ToolResult(ToolResult {
                    tool_call_id: "c1".to_owned(),
                    tool_name: "draw".to_owned(),
                    input: json!({}),
                    outcome,
                })
            };
            let parts = vec![
                result(ToolOutcome::Error("no".to_owned())),
                result(ToolOutcome::Output(output)),
            ];
            let message = Message { id: None, role: Role::Tool, parts };
            let request = ModelRequest {
                messages: Arc::new(vec![Message::text(Role::User, "draw"), message]),
                ..ModelRequest::default()
            };
            let read = Content::read_by(&Model { reads_content }, request.clone());
            assert_eq!(read.messages[0], request.messages[0]);
            assert_eq!(read.messages[1].parts[0], request.messages[1].parts[0]);
            assert_eq!(read.messages[1].parts[1], result(ToolOutcome::Output(expected.clone())));
        }
    }
}
