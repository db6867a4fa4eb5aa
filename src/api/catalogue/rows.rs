//! The rows of the catalogue, by subject.

mod agents;
mod documentation;
mod memory;
mod observability;
mod system;
mod tools;
mod workflows;

use std::borrow::Cow;
use std::sync::LazyLock;

use super::Method::{Delete, Get, Patch, Post, Put};
use super::{Access, Answer, Class, Method, Route, RouteName, Tag};

/// All built-in routes, in matching order: the busiest first, fixed segments before variable ones.
pub static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    [
        workflows::ROWS,
        agents::ROWS,
        documentation::ROWS,
        system::ROWS,
        tools::ROWS,
        memory::ROWS,
        observability::ROWS,
    ]
    .concat()
});

/// Creates a public row with the default class of its method and answer.
const fn row(
    method: Method,
    path: &'static str,
    name: RouteName,
    answer: Answer,
    tag: Tag,
    summary: &'static str,
) -> Route {
    let class = match (method, answer) {
        (Get, Answer::Json | Answer::Text) => Class::Read,
        (Get, Answer::Events | Answer::WebSocket) => Class::Stream,
        (Post | Put | Patch | Delete, _) => Class::Write,
    };
    Route {
        method,
        path: Cow::Borrowed(path),
        name,
        answer,
        tag,
        class,
        access: Access::Public,
        is_owned: false,
        summary: Cow::Borrowed(summary),
        like: None,
    }
}

impl Route {
    pub(super) const fn open(mut self) -> Self {
        self.access = Access::Open;
        self.class = Class::Probe;
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
