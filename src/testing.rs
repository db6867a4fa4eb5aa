//! Tests of workflows and agents, in virtual time.
//!
//! A [`World`] is a server without HTTP over a store in memory. Its time is virtual: while nothing
//! else can happen, it leaps to what is due next, so that a wait of two days takes no time. A test
//! kills the process and starts it again with [`World::restart`].
//!
//! ```
//! use std::time::Duration;
//!
//! use greenroom::prelude::*;
//! use greenroom::testing::{self, Mock};
//! use serde_json::json;
//!
//! fn server() -> Greenroom {
//!     let manager = Suspend::always()
//!         .deadline(Duration::from_secs(48 * 3600))
//!         .on_timeout_resume(json!({ "approved": false }));
//!     let approval = Step::map("manager", json!({ "approved": "resume.approved" })).suspend(manager);
//!     let pay = Step::run("pay", "bank.pay");
//!     let flow = Workflow::new("expense").step(approval).step(pay);
//!     Greenroom::new().workflow(flow)
//! }
//!
//! testing::run(async {
//!     let pay = Mock::output(json!({ "receipt": 7 }));
//!     let world = server().test().mock_step("expense", "pay", pay.clone()).launch().await?;
//!     let run = world.start("expense", &json!({ "amount": 900 })).await?;
//!
//!     let world = world.restart().await?;
//!     let run = world.run("expense", run.id().as_str());
//!     run.settled().await?;
//!     world.answer("manager", &json!({ "approved": true })).await?;
//!
//!     assert_eq!(run.result().await?, json!({ "receipt": 7 }));
//!     assert_eq!(*pay.calls()[0].input, json!({ "approved": true }));
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })
//! # .unwrap();
//! ```

mod answer;
mod case;
pub(crate) mod configured;
mod crashes;
pub(crate) mod expectation;
mod mock;
mod names;
mod outside;
pub(crate) mod planned;
mod play;
pub(crate) mod setup;
mod swap;
mod world;

pub use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel, ScriptedPiece};

pub use greenroom_actors::domain::status::Status;

pub use self::answer::{AnswerError, Answerer};
pub use self::case::{Case, Outcome};
pub use self::configured::{Tested, run_configured};
pub use self::mock::{Mock, MockCall};
pub use self::setup::Setup;
pub use self::world::World;

use crate::app::block_on;

#[cfg(test)]
mod tests;

/// Runs a test in virtual time, on this thread, and returns its result. Call it from an ordinary
/// `#[test]` function.
///
/// Time leaps while the test and the world only wait, also for the network: what is not mocked and
/// takes real time seems to time out.
pub fn run<F: Future>(test: F) -> F::Output {
    block_on(async {
        tokio::time::pause();
        test.await
    })
}
