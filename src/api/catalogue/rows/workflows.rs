//! Routes of workflows and executions.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Class, Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(
        Post,
        "/workflows/:id/execute",
        RouteName::ExecuteWorkflow,
        "Run a workflow until it ends or suspends",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/workflows/:id/executions/:executionId/resume",
        RouteName::ResumeExecution,
        "Resume a suspended execution",
    )
    .owned()
    .costing(Class::Run),
    row(
        Post,
        "/workflows/:id/stream",
        RouteName::StreamWorkflow,
        "Run a workflow and stream its events",
    )
    .events()
    .protected()
    .costing(Class::Run),
    row(
        Get,
        "/workflows/executions",
        RouteName::ListExecutions,
        "List executions of all workflows, newest first",
    )
    .owned(),
    row(
        Get,
        "/workflows/executions/counts",
        RouteName::CountExecutions,
        "Count executions by workflow and status",
    )
    .owned(),
    row(
        Get,
        "/workflows/executions/outcomes",
        RouteName::CountOutcomes,
        "Count ended executions by outcome, time and workflow",
    )
    .owned(),
    row(
        Post,
        "/workflows/executions/bulk",
        RouteName::BulkExecutions,
        "Suspend, resume, cancel or replay many executions",
    )
    .owned()
    .costing(Class::Run),
    row(
        Get,
        "/workflows/:id/executions",
        RouteName::ListWorkflowExecutions,
        "List executions of a workflow, newest first",
    )
    .owned(),
    row(
        Get,
        "/workflows/:id/versions",
        RouteName::ListVersions,
        "Count executions of a workflow by version and status",
    )
    .owned(),
    row(
        Get,
        "/workflows/:id/executions/:executionId/events",
        RouteName::ListEvents,
        "List events of an execution",
    )
    .owned(),
    row(
        Get,
        "/workflows/:id/executions/:executionId/state",
        RouteName::DescribeExecution,
        "Show the state of an execution",
    )
    .owned(),
    row(
        Get,
        "/workflows/:id/executions/:executionId/why",
        RouteName::ExplainExecution,
        "Explain what an execution waits for",
    )
    .owned(),
    row(
        Post,
        "/workflows/:id/executions/:executionId/suspend",
        RouteName::SuspendExecution,
        "Suspend a running execution",
    )
    .owned(),
    row(
        Post,
        "/workflows/:id/executions/:executionId/replay",
        RouteName::ReplayExecution,
        "Start a new execution from a step of this one",
    )
    .protected()
    .owned()
    .costing(Class::Run),
    row(
        Post,
        "/workflows/:id/executions/:executionId/cancel",
        RouteName::CancelExecution,
        "Cancel an execution",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/workflows/:id/executions/:executionId/stream",
        RouteName::AttachToExecution,
        "Stream the events of an execution, from the first or a given one",
    )
    .events()
    .owned(),
    row(Get, "/workflows", RouteName::ListWorkflows, "List the registered workflows"),
    row(
        Get,
        "/workflows/:id",
        RouteName::DescribeWorkflow,
        "Show a workflow, its steps and schemas",
    ),
];
