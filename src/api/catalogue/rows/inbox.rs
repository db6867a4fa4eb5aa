//! Routes of the inbox.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(Get, "/inbox", RouteName::ListAsks, "List what waits for a person").owned(),
    row(Get, "/inbox/stream", RouteName::WatchAsks, "Stream what happens to asks").events().owned(),
    row(Get, "/inbox/link/:token", RouteName::ShowAskLink, "Show the page of a link to an ask")
        .text()
        .link(),
    row(Post, "/inbox/link/:token", RouteName::AnswerAskLink, "Answer an ask with a link")
        .text()
        .link(),
    row(Get, "/inbox/:askId", RouteName::DescribeAsk, "Show an ask and how to answer it").owned(),
    row(Post, "/inbox/:askId/answer", RouteName::AnswerAsk, "Answer an ask").owned(),
    row(Post, "/inbox/:askId/claim", RouteName::ClaimAsk, "Claim an ask for a while").owned(),
    row(Post, "/inbox/:askId/release", RouteName::ReleaseAsk, "Give up a claim").owned(),
    row(Post, "/inbox/:askId/assign", RouteName::AssignAsk, "Change who is asked").owned(),
    row(Post, "/inbox/:askId/link", RouteName::LinkToAsk, "Make a link to answer an ask with")
        .owned(),
];
