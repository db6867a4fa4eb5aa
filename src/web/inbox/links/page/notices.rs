//! Refusals in the words of people who have nothing but a link.

use greenroom_actors::domain::time::Timestamp;

use super::minute;
use crate::api::ApiError;
use crate::api::error::AskRefusal;

/// Returns the title of a page about a refusal, and its text.
pub(super) fn words(error: &ApiError) -> (String, String) {
    let on = |at: &Timestamp| minute(*at);
    let ApiError::Ask(refusal) = error else { return as_for_programs(error) };
    let (title, text) = match refusal {
        AskRefusal::Answered { at, by: Some(by), .. } => {
            ("Already answered", format!("{by} answered on {}. Nothing more is needed.", on(at)))
        }
        AskRefusal::Answered { at, by: None, .. } => {
            ("Already answered", format!("The answer came on {}. Nothing more is needed.", on(at)))
        }
        AskRefusal::Expired { at, .. } => {
            ("Too late", format!("This could be answered until {}.", on(at)))
        }
        AskRefusal::Withdrawn { at, .. } => (
            "No longer needed",
            format!("What waited for an answer has ended on {}. Nothing more is needed.", on(at)),
        ),
        AskRefusal::Ambiguous { .. } => (
            "More than one question",
            "Open each question by its own link. No answer was recorded.".to_owned(),
        ),
        AskRefusal::NotAssigned { .. } => (
            "Others are asked",
            "Others are asked since this link was made. No answer was recorded.".to_owned(),
        ),
        AskRefusal::NotPermitted { needs, .. } => (
            "More is needed to approve",
            format!(
                "To approve this counts for later calls too, and needs {needs}, which a link does not \
                 have. No answer was recorded; it can be declined with this link."
            ),
        ),
        AskRefusal::Refused(why) => {
            ("Not accepted", sentence(&format!("No answer was recorded: {why}")))
        }
        AskRefusal::Claimed { by, until, .. } => {
            let text = format!(
                "No answer was recorded. If {by} has not answered by {}, you can answer with this \
                 link.",
                on(until)
            );
            return (format!("{by} is about to answer"), text);
        }
        AskRefusal::LinkInvalid => (
            "This link does not work",
            "It is incomplete, or no longer accepted. Open it again from the message that you \
             have, or ask for another link."
                .to_owned(),
        ),
        AskRefusal::LinkExpired { at } => (
            "This link is too old",
            format!("It could be used until {}. Ask for another link.", on(at)),
        ),
        AskRefusal::NotFound(_)
        | AskRefusal::Changed { .. }
        | AskRefusal::NothingWaits
        | AskRefusal::InvalidData(_)
        | AskRefusal::LinksOff => return as_for_programs(error),
    };
    (title.to_owned(), text)
}

/// Returns a text that ends as a sentence does.
fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

fn as_for_programs(error: &ApiError) -> (String, String) {
    (error.code().title().to_owned(), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_no_ids() {
        let (id, at) = (|| "ask_3b9f".to_owned(), Timestamp(1_790_000_000_000));
        let by = || "ann".to_owned();
        let rows = [
            (
                AskRefusal::Answered { id: id(), at, by: Some(by()) },
                "ann answered on 2026-09-21 14:13 UTC.",
            ),
            (AskRefusal::Answered { id: id(), at, by: None }, "The answer came on 2026-09-21"),
            (AskRefusal::Expired { id: id(), at }, "until 2026-09-21 14:13 UTC."),
            (AskRefusal::Withdrawn { id: id(), at }, "has ended on 2026-09-21"),
            (AskRefusal::Claimed { id: id(), by: by(), until: at }, "If ann has not answered by"),
            (AskRefusal::LinkExpired { at }, "until 2026-09-21 14:13 UTC."),
            (
                AskRefusal::NotPermitted { request: by(), needs: "the role admin".to_owned() },
                "needs the role admin, which a link does not have",
            ),
        ];
        let refused = ["too large", "Too large. ", "Really?"]
            .map(|why| words(&ApiError::Ask(AskRefusal::Refused(why.to_owned()))).1);
        let ends = ["too large.", "Too large.", "Really?"];
        assert_eq!(refused, ends.map(|end| format!("No answer was recorded: {end}")));
        for (refusal, part) in rows {
            let (title, text) = words(&ApiError::Ask(refusal));
            assert!(text.contains(part), "{part} in {text}");
            assert!(!title.contains("ask_") && !text.contains("ask_"), "{title}: {text}");
        }
    }
}
