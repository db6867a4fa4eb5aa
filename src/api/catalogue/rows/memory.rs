//! Routes of conversations and memory.

use super::row;
use crate::api::catalogue::Method::{Delete, Get, Patch, Post};
use crate::api::catalogue::{Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(
        Get,
        "/api/memory/conversations",
        RouteName::ListConversations,
        "List conversations of an agent, newest change first",
    )
    .protected()
    .owned(),
    row(Post, "/api/memory/conversations", RouteName::CreateConversation, "Create a conversation")
        .protected()
        .owned(),
    row(
        Get,
        "/api/memory/conversations/:id",
        RouteName::DescribeConversation,
        "Show a conversation",
    )
    .protected()
    .owned(),
    row(
        Patch,
        "/api/memory/conversations/:id",
        RouteName::ChangeConversation,
        "Change the title or the metadata of a conversation",
    )
    .protected()
    .owned(),
    row(
        Delete,
        "/api/memory/conversations/:id",
        RouteName::DeleteConversation,
        "Delete a conversation with its messages",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/api/memory/conversations/:id/messages",
        RouteName::ListMessages,
        "Show the newest messages of a conversation, oldest first",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/api/memory/conversations/:id/working-memory",
        RouteName::ShowWorkingMemory,
        "Show the working memory of a conversation",
    )
    .protected()
    .owned(),
    row(
        Post,
        "/api/memory/conversations/:id/working-memory",
        RouteName::SetWorkingMemory,
        "Set the working memory of a conversation",
    )
    .protected()
    .owned(),
    row(
        Post,
        "/api/memory/conversations/:id/clone",
        RouteName::CloneConversation,
        "Copy a conversation under another id",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/api/memory/search",
        RouteName::SearchMessages,
        "Find messages that contain a text, newest first",
    )
    .protected()
    .owned(),
    row(
        Delete,
        "/api/memory/users/:userId",
        RouteName::ForgetUser,
        "Delete a user's conversations and generations",
    )
    .protected()
    .owned(),
];
