//! Forgetting a user: the state in memory must not bring back an erased name.

use std::sync::Arc;

use actix::{Context, Handler};

use crate::execution::ExecutionActor;
use crate::shard::messages::ForgetUser;

impl Handler<ForgetUser> for ExecutionActor {
    type Result = ();

    fn handle(&mut self, ForgetUser(user): ForgetUser, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        if Arc::make_mut(&mut life.machine).forget(&user) {
            // A copy that is deciding still has the name.
            self.in_scope(|actor| actor.decide_again(ctx));
        }
    }
}
