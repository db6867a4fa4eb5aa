//! Routes of conversations and memory.

use super::row;
use crate::api::catalogue::Method::{Delete, Get, Patch, Post};
use crate::api::catalogue::{Answer, Route, RouteName, Tag};

pub(super) const ROWS: &[Route] = &[
    row(
        Get,
        "/api/memory/conversations",
        RouteName::ListConversations,
        Answer::Json,
        Tag::Memory,
        "List conversations of an agent, newest change first",
    )
    .protected()
    .owned(),
    row(
        Post,
        "/api/memory/conversations",
        RouteName::CreateConversation,
        Answer::Json,
        Tag::Memory,
        "Create a conversation",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/api/memory/conversations/:id",
        RouteName::DescribeConversation,
        Answer::Json,
        Tag::Memory,
        "Show a conversation",
    )
    .protected()
    .owned(),
    row(
        Patch,
        "/api/memory/conversations/:id",
        RouteName::ChangeConversation,
        Answer::Json,
        Tag::Memory,
        "Change the title or the metadata of a conversation",
    )
    .protected()
    .owned(),
    row(
        Delete,
        "/api/memory/conversations/:id",
        RouteName::DeleteConversation,
        Answer::Json,
        Tag::Memory,
        "Delete a conversation with its messages",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/api/memory/conversations/:id/messages",
        RouteName::ListMessages,
        Answer::Json,
        Tag::Memory,
        "Show the newest messages of a conversation, oldest first",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/api/memory/conversations/:id/working-memory",
        RouteName::ShowWorkingMemory,
        Answer::Json,
        Tag::Memory,
        "Show the working memory of a conversation",
    )
    .protected()
    .owned(),
    row(
        Post,
        "/api/memory/conversations/:id/working-memory",
        RouteName::SetWorkingMemory,
        Answer::Json,
        Tag::Memory,
        "Set the working memory of a conversation",
    )
    .protected()
    .owned(),
    row(
        Post,
        "/api/memory/conversations/:id/clone",
        RouteName::CloneConversation,
        Answer::Json,
        Tag::Memory,
        "Copy a conversation under another id",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/api/memory/search",
        RouteName::SearchMessages,
        Answer::Json,
        Tag::Memory,
        "Find messages that contain a text, newest first",
    )
    .protected()
    .owned(),
    row(
        Delete,
        "/api/memory/users/:userId",
        RouteName::ForgetUser,
        Answer::Json,
        Tag::Memory,
        "Delete a user's conversations and generations",
    )
    .protected()
    .owned(),
];
