//! Refusals of the inbox.

use super::*;

#[test]
fn an_ask_that_is_closed_says_when_and_by_whom() {
    let at = Timestamp(1_790_000_000_000);
    let by = Some(Arc::new(Principal::claimed("lea")));
    let closed = |state, by| ApiError::from_ask("ask_1", AskError::Closed { state, at, by });
    let time = at.to_iso();
    let rows = [
        (closed(AskState::Answered, by), format!("Ask ask_1 was answered at {time} by lea")),
        (closed(AskState::Answered, None), format!("Ask ask_1 was answered at {time}")),
        (closed(AskState::Expired, None), format!("The deadline of ask ask_1 passed at {time}")),
        (
            closed(AskState::Withdrawn, None),
            format!("Ask ask_1 was withdrawn at {time}: what waited for it has ended"),
        ),
    ];
    for (error, text) in rows {
        assert_eq!((error.status(), error.to_string()), (409, text));
    }
}

#[test]
fn an_ask_of_others_names_those_who_may_answer() {
    let unknown = "the user who started this is not known, so that `!self` leaves only users that are \
                   named one by one";
    let rows: [(&[&str], _, _, String); 7] = [
        (
            &["user:ann"],
            true,
            false,
            ": user:ann may answer; this request names no user".to_owned(),
        ),
        (&["user:ann", "role:lead"], false, true, ": user:ann, role:lead may answer".to_owned()),
        (
            &["role:lead", "!self"],
            false,
            false,
            ": role:lead may answer, but not the user who started this".to_owned(),
        ),
        (
            &["user:ann", "!self", "role:lead"],
            false,
            true,
            format!(": user:ann may answer; {unknown}"),
        ),
        (&["role:cto", "!self"], false, true, format!(": nobody may answer; {unknown}")),
        (
            &["!self"],
            false,
            false,
            ": every user but the one who started this may answer".to_owned(),
        ),
        (&[], false, true, String::new()),
    ];
    for (to, is_nameless, is_of_nobody, text) in rows {
        let to = to.iter().map(|it| it.parse().unwrap()).collect();
        let error = AskError::NotAssigned { to, is_nameless, is_of_nobody };
        let error = ApiError::from_ask("ask_1", error);
        assert_eq!((error.status(), error.code().as_str()), (403, "not_assigned"));
        assert_eq!(error.to_string(), format!("Others are asked, not this caller{text}"));
    }
}

#[test]
fn an_ask_that_is_taken_or_ambiguous_says_by_what() {
    let until = Timestamp(1_790_000_000_000);
    let asks = vec![Arc::from("ask_1"), Arc::from("ask_2")];
    let rows = [
        (
            AskError::Ambiguous { asks },
            409,
            "ask_ambiguous",
            "There are, or were, several asks ask_1: answer ask_1 or ask_2 in the inbox".to_owned(),
        ),
        (
            AskError::Claimed { by: "lea".into(), until },
            409,
            "ask_claimed",
            format!("lea is about to answer ask ask_1, until {}", until.to_iso()),
        ),
        (
            AskError::Changed { revision: 4 },
            412,
            "ask_changed",
            "Ask ask_1 has changed: its revision is 4".to_owned(),
        ),
    ];
    for (error, status, code, text) in rows {
        let error = ApiError::from_ask("ask_1", error);
        assert_eq!((error.status(), error.code().as_str()), (status, code));
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn an_approval_that_needs_more_says_what() {
    let (request, needs) = (Arc::from("POST /x"), "the role admin".to_owned());
    let error = ApiError::from_ask("ask_1", AskError::NotPermitted { request, needs });
    assert_eq!((error.status(), error.code().as_str()), (403, "not_assigned"));
    let text = "Approving this call counts for later calls too, and needs what POST /x needs: the \
                role admin. The ask stays open, and can be declined";
    assert_eq!(error.to_string(), text);
}
