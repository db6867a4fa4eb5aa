//! The table of codes, and `docs/errors.md`, which is generated from it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::api::accept::PROBLEM;
use crate::api::error::{ApiError, ErrorCode};
use crate::api::wire::envelope::Failed;
use crate::api::wire::problem::ProblemView;
use crate::made_page;

const BEGIN: &str = "\
# Errors

Generated from the table in `src/api/error/code.rs` by
`UPDATE_DOCS=1 cargo test --lib the_page_of_errors`; a test compares the two.

A refusal never has the status 200, and a 200 is never a refusal. All of them have the same form,
whether they come from a route, a body, the token, the framework or a panic:

```
";

const FORM: &str = "
```

- The **text** in `error` is for people. It says what is wrong, where, and often what to do.
  Programs should not compare it.
- The **code** in the header `x-error-code` is for programs. Codes are listed below; a published
  code never changes its meaning.
- `x-request-id` is the id that the request had, or a generated one. `x-execution-id` or
  `x-generation-id` is set if the refusal concerns an execution or a generation.
- `Retry-After` gives the seconds to wait before the same request is sent again.
- A 401 has `WWW-Authenticate`, a 405 has `Allow`, a 426 has `Upgrade`.
- An answer to `HEAD` has all of this and no body.

## As a problem

If `Accept` names `application/problem+json` with at least the weight of `application/json`,
refusals have the form of RFC 9457. Header fields and other answers stay the same.

```
";

const REST: &str = "
```

`type` is a URN, not an address: `urn:greenroom:error:` and the code. `detail` is the text.
`requestId`, `executionId` and `generationId` are the ids of the header fields, if present.

## Exceptions

- Invalid HTTP is answered before the service sees it, with an empty body, and the connection is
  closed: a malformed head, a target that is too long, no `Host`, an unknown transfer coding (400),
  a head that does not arrive in time (408), too many or too large header fields (431).
- A stream that has begun has the status 200. Later failures are events of the stream: `error` of a
  generation, `workflow-error` of an execution.
- An open WebSocket sends `{\"type\":\"ERROR\",\"success\":false,\"error\":\"…\"}`, or closes
  with a close code.
- `/readyz` says in plain text that the server is not ready.
- An added handler in Rust may answer anything. The errors that it returns have the envelope; those
  with a status 5xx become `internal`, and their cause is only in the log.

## Codes
";

fn page() -> String {
    let refusal = ApiError::WorkflowNotFound("orders".to_owned().into());
    let text = refusal.to_string();
    let status = refusal.status();
    let envelope = serde_json::to_string(&Failed::of(&text, None)).unwrap();
    let problem = ProblemView::of(refusal.code(), status, &text);
    let problem = problem.about(Some("5f0c1d9e3b7a2468-1"), None, None);
    let problem = serde_json::to_string_pretty(&problem).unwrap();
    let code = refusal.code();
    let mut page = format!(
        "{BEGIN}HTTP/1.1 {status} {title}\ncontent-type: application/json\n\
         x-error-code: {code}\nx-request-id: 5f0c1d9e3b7a2468-1\n\n{envelope}{FORM}\
         HTTP/1.1 {status} {title}\ncontent-type: {PROBLEM}\n\
         x-error-code: {code}\nx-request-id: 5f0c1d9e3b7a2468-1\n\n{problem}{REST}",
        title = "Not Found",
    );
    for (group, codes) in ErrorCode::GROUPS {
        let head = "| Code | Status | Title | When | What to do |\n|---|---|---|---|---|";
        writeln!(page, "\n### {group}\n\n{head}").unwrap();
        for code in *codes {
            let wait = code.retry_after_s().map(|s| format!(", `Retry-After: {s}`"));
            let (status, wait) = (code.status(), wait.unwrap_or_default());
            let (title, cause, cure) = (code.title(), code.cause(), code.cure());
            writeln!(page, "| `{code}` | {status}{wait} | {title} | {cause} | {cure} |").unwrap();
        }
    }
    page
}

#[test]
fn the_page_of_errors_matches_the_table() {
    made_page::compare("docs/errors.md", &page(), "the_page_of_errors");
}

#[test]
fn rows_of_the_table_are_well_formed() {
    let mut seen = BTreeSet::new();
    for code in ErrorCode::ALL {
        let name = code.as_str();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert!(seen.insert(name), "{name} is there twice");
        assert!(seen.insert(code.title()), "the title of {name} is there twice");
        assert!((400..600).contains(&code.status()), "{name}");
        assert_eq!(code.retry_after_s().is_some(), code.status() == 503, "{name}");
        assert!(!code.title().ends_with('.'), "{name}");
        for text in [code.cause(), code.cure()] {
            assert!(text.ends_with('.') && text.len() > 10, "{name}: {text}");
            // otherwise it would break the Markdown table
            assert!(!text.contains(['|', '\n']) && !text.contains("  "), "{name}: {text}");
        }
    }
    let grouped = ErrorCode::GROUPS.iter().flat_map(|(_, codes)| codes.iter());
    assert!(grouped.eq(ErrorCode::ALL));
}
