//! Functions and tools over types: arguments are read from JSON, results are written as JSON.
//!
//! A typed function takes [`Data`] of the program as far as it needs any, then its input, then the
//! context if it needs that:
//!
//! ```
//! use greenroom::builder::{Retry, Step, Workflow};
//! use greenroom::typed::Data;
//! use greenroom::{Greenroom, step::{StepContext, StepError}};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize)]
//! struct Charge {
//!     customer: String,
//!     cents: u64,
//! }
//!
//! #[derive(Serialize)]
//! struct Receipt {
//!     number: String,
//! }
//!
//! struct Bank;
//!
//! impl Bank {
//!     async fn charge(&self, key: &str, charge: &Charge) -> std::io::Result<String> {
//!         Ok(format!("{key}: {} pays {}", charge.customer, charge.cents))
//!     }
//! }
//!
//! async fn pay(
//!     Data(bank): Data<Bank>,
//!     charge: Charge,
//!     step: StepContext,
//! ) -> Result<Receipt, StepError> {
//!     if charge.cents == 0 {
//!         return Err(StepError::terminal("nothing to pay"));
//!     }
//!     Ok(Receipt { number: bank.charge(&step.idempotency_key, &charge).await? })
//! }
//!
//! let order = Workflow::new("order").step(Step::call("pay", pay).retry(Retry::attempts(3)));
//! let server = Greenroom::new().data(Bank).workflow(order);
//! # drop(server);
//! ```
//!
//! A function that reads no input has [`IgnoredAny`] in its place. In a closure, the types of all
//! arguments have to be written out. A function that suspends its step
//! returns a [`StepOutcome`](crate::step::StepOutcome) and is registered with
//! [`Greenroom::function`](crate::Greenroom::function).

mod bound;
mod function;
mod state;
#[cfg(test)]
mod tests;

pub use self::function::{CallContext, TypedFunction, WithContext, WithoutContext};
pub use self::state::{Data, FromState, State};
/// Stands for an input that a function does not read, whatever it is.
pub use serde::de::IgnoredAny;

#[cfg(feature = "schemars")]
pub(crate) use self::bound::tool_function;
pub(crate) use self::bound::{Binding, Carried, step_function};

/// The compiler refuses the commonest mistakes: an input that cannot be read,
///
/// ```compile_fail,E0277
/// use greenroom::prelude::*;
///
/// struct Order;
///
/// async fn price(_: Order) -> Result<u32, StepError> {
///     Ok(1)
/// }
///
/// Step::call("price", price);
/// ```
///
/// a result that cannot be written,
///
/// ```compile_fail,E0277
/// use greenroom::prelude::*;
///
/// struct Price;
///
/// async fn price(_: u32) -> Result<Price, StepError> {
///     Ok(Price)
/// }
///
/// Step::call("price", price);
/// ```
///
/// the failure of a tool in a step,
///
/// ```compile_fail,E0277
/// use greenroom::prelude::*;
///
/// async fn price(n: u32) -> Result<u32, ToolError> {
///     Ok(n)
/// }
///
/// Step::call("price", price);
/// ```
///
/// and the context before the input.
///
/// ```compile_fail,E0277
/// use greenroom::prelude::*;
///
/// async fn price(_: StepContext, n: u32) -> Result<u32, StepError> {
///     Ok(n)
/// }
///
/// Step::call("price", price);
/// ```
#[cfg(doctest)]
struct Mistakes;
