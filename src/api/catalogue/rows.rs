//! The rows of the catalogue, by subject.

mod agents;
mod documentation;
mod inbox;
mod mcp_face;
mod memory;
mod observability;
mod openai;
mod system;
mod tools;
mod workflows;

use std::borrow::Cow;
use std::sync::LazyLock;

use super::{Access, Answer, Class, Method, Route, RouteName, Tag};

/// All built-in routes, in matching order: the busiest first, fixed segments before variable ones.
pub static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let groups = [
        (Tag::Workflows, workflows::ROWS),
        (Tag::Agents, agents::ROWS),
        (Tag::Inbox, inbox::ROWS),
        (Tag::Documentation, documentation::ROWS),
        (Tag::System, system::ROWS),
        (Tag::OpenAi, openai::ROWS),
        (Tag::Tools, tools::ROWS),
        (Tag::Mcp, mcp_face::ROWS),
        (Tag::Memory, memory::ROWS),
        (Tag::Observability, observability::ROWS),
    ];
    let tagged = |(tag, rows): (Tag, &'static [Route])| {
        rows.iter().map(move |row| Route { tag, ..row.clone() })
    };
    groups.into_iter().flat_map(tagged).collect()
});

/// Creates a public row with a JSON response. [`ROUTES`] sets its tag.
const fn row(method: Method, path: &'static str, name: RouteName, summary: &'static str) -> Route {
    Route {
        method,
        path: Cow::Borrowed(path),
        name,
        answer: Answer::Json,
        tag: Tag::Custom,
        class: if matches!(method, Method::Get) { Class::Read } else { Class::Write },
        access: Access::Public,
        is_owned: false,
        summary: Cow::Borrowed(summary),
        like: None,
    }
}

impl Route {
    pub(super) const fn text(mut self) -> Self {
        self.answer = Answer::Text;
        self
    }

    pub(super) const fn events(self) -> Self {
        self.streaming(Answer::Events)
    }

    pub(super) const fn websocket(self) -> Self {
        self.streaming(Answer::WebSocket)
    }

    const fn streaming(mut self, answer: Answer) -> Self {
        self.answer = answer;
        if matches!(self.method, Method::Get) {
            self.class = Class::Stream;
        }
        self
    }

    pub(super) const fn open(mut self) -> Self {
        self.access = Access::Open;
        self.class = Class::Probe;
        self
    }

    /// The address is the credential, or what it shows is for callers without one.
    pub(super) const fn link(mut self) -> Self {
        self.access = Access::Open;
        self
    }

    pub(super) const fn page(mut self) -> Self {
        self.access = Access::Page;
        self
    }

    pub(super) const fn protected(mut self) -> Self {
        self.access = Access::Protected;
        self
    }

    pub(super) const fn owned(mut self) -> Self {
        self.is_owned = true;
        self
    }

    pub(super) const fn costing(mut self, class: Class) -> Self {
        self.class = class;
        self
    }
}
