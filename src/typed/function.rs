//! The shapes of typed functions.

use std::marker::PhantomData;

use greenroom_actors::agent::tool::{ToolContext, ToolError};
use greenroom_actors::function::{StepContext, StepError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::FromState;

/// Context of a call, [`StepContext`] or [`ToolContext`], and the failure that belongs to it.
pub trait CallContext: sealed::Sealed + Send + 'static {
    type Error: Send;
}

impl CallContext for StepContext {
    type Error = StepError;
}

impl CallContext for ToolContext {
    type Error = ToolError;
}

mod sealed {
    use super::{StepContext, ToolContext};

    pub trait Sealed {}

    impl Sealed for StepContext {}
    impl Sealed for ToolContext {}
}

/// An asynchronous function over typed arguments: up to three [`Data`](super::Data), then the
/// input, then the context, which can be left out. `Shape` is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function over types for this place",
    label = "does not have the arguments or the result of a typed function",
    note = "its arguments are up to three `Data<T>` of types that are `Send + Sync`, then one input \
            that implements `Deserialize` (`greenroom::typed::IgnoredAny` if it is not read), then, \
            if wanted, the `{C}`",
    note = "it is an `async fn` that returns `Result<T, StepError>` in a step and `Result<T, \
            ToolError>` in a tool, where `T` implements `Serialize`",
    note = "it is `Clone + Send + Sync + 'static`, and its future is `Send`"
)]
pub trait TypedFunction<C: CallContext, Shape>: Clone + Send + Sync + 'static {
    type State: FromState;
    type Input: DeserializeOwned + Send + 'static;
    type Output: Serialize;

    /// Calls the function.
    fn call(
        &self,
        state: Self::State,
        input: Self::Input,
        context: C,
    ) -> impl Future<Output = Result<Self::Output, C::Error>> + Send;
}

/// Shape of functions that take the context.
#[derive(Debug)]
pub struct WithContext<State, Input>(PhantomData<(State, Input)>);

/// Shape of functions that do not take the context.
#[derive(Debug)]
pub struct WithoutContext<State, Input>(PhantomData<(State, Input)>);

macro_rules! shapes {
    ($($value:ident: $part:ident)*) => {
        impl<F, C, R, I, O, $($part),*> TypedFunction<C, WithContext<($($part,)*), I>> for F
        where
            F: Fn($($part,)* I, C) -> R + Clone + Send + Sync + 'static,
            $($part: FromState,)*
            C: CallContext,
            R: Future<Output = Result<O, C::Error>> + Send,
            I: DeserializeOwned + Send + 'static,
            O: Serialize,
        {
            type State = ($($part,)*);
            type Input = I;
            type Output = O;

            fn call(
                &self,
                ($($value,)*): Self::State,
                input: I,
                context: C,
            ) -> impl Future<Output = Result<O, C::Error>> + Send {
                self($($value,)* input, context)
            }
        }

        impl<F, C, R, I, O, $($part),*> TypedFunction<C, WithoutContext<($($part,)*), I>> for F
        where
            F: Fn($($part,)* I) -> R + Clone + Send + Sync + 'static,
            $($part: FromState,)*
            C: CallContext,
            R: Future<Output = Result<O, C::Error>> + Send,
            I: DeserializeOwned + Send + 'static,
            O: Serialize,
        {
            type State = ($($part,)*);
            type Input = I;
            type Output = O;

            fn call(
                &self,
                ($($value,)*): Self::State,
                input: I,
                _: C,
            ) -> impl Future<Output = Result<O, C::Error>> + Send {
                self($($value,)* input)
            }
        }
    };
}

shapes! {}
shapes! { a: A }
shapes! { a: A b: B }
shapes! { a: A b: B d: D }
