//! Forgetting a user: what is in memory must not bring back what was struck from the record.

use std::sync::Arc;

use actix::{Context, Handler, Message};

use crate::execution::ExecutionActor;

/// Strikes a user from the state of an execution, as the store does from its facts.
#[derive(Clone, Message)]
#[rtype(result = "()")]
pub(crate) struct ForgetUser(pub(crate) Arc<str>);

impl Handler<ForgetUser> for ExecutionActor {
    type Result = ();

    fn handle(&mut self, ForgetUser(user): ForgetUser, _: &mut Context<Self>) {
        if let Some(life) = &mut self.life {
            life.machine.forget(&user);
        }
    }
}
