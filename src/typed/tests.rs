//! Typed functions: their arguments, failures, and the state of the program.

use std::sync::Arc;

use greenroom_actors::function::{StepContext, StepError, StepOutcome};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Data, IgnoredAny, State, step_function};
use crate::builder::{Block, Step, Workflow};
use crate::{Greenroom, Problems};

#[derive(Deserialize)]
struct Charge {
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    cents: u64,
}

#[derive(Serialize)]
struct Receipt {
    total: u64,
    key: String,
}

trait Shop: Send + Sync {
    fn tax(&self) -> u64;
}

struct Village;

impl Shop for Village {
    fn tax(&self) -> u64 {
        7
    }
}

async fn pay(
    Data(shop): Data<dyn Shop>,
    charge: Charge,
    step: StepContext,
) -> Result<Receipt, StepError> {
    let net: u64 = charge.lines.iter().map(|line| line.cents).sum();
    if net == 0 {
        return Err(StepError::terminal("nothing to pay"));
    }
    Ok(Receipt { total: net + shop.tax(), key: step.idempotency_key })
}

async fn double(n: u32) -> Result<u32, StepError> {
    Ok(n * 2)
}

fn state() -> State {
    let mut state = State::default();
    let shop: Arc<dyn Shop> = Arc::new(Village);
    assert!(state.add(shop));
    state
}

async fn called(data: Value) -> Result<StepOutcome, StepError> {
    let (function, binding) = step_function("pay", pay);
    binding.bind(&state()).unwrap();
    function(StepContext::for_test(data)).await
}

#[tokio::test]
async fn arguments_are_read_and_the_result_is_written() {
    let paid = called(json!({ "lines": [{ "cents": 5 }, { "cents": 6 }] })).await;
    assert_eq!(paid, Ok(json!({ "total": 18, "key": "test/step" }).into()));
    assert!(called(json!({ "lines": [] })).await.unwrap_err().is_terminal());
}

#[test]
fn contexts_name_the_field_that_does_not_fit() {
    let order = json!({ "lines": [{ "cents": 5 }, { "cents": "6" }] });
    let read = StepContext::for_test(order).data_as::<Charge>();
    let error = read.map(drop).unwrap_err();
    assert!(error.message().starts_with("data.lines[1].cents: invalid type: string"), "{error}");
}

#[tokio::test]
async fn an_input_need_not_be_read() {
    async fn tax(Data(shop): Data<dyn Shop>, _: IgnoredAny) -> Result<u64, StepError> {
        Ok(shop.tax())
    }
    let (function, binding) = step_function("tax", tax);
    binding.bind(&state()).unwrap();
    for data in [Value::Null, json!(1), json!({ "lines": [] })] {
        let step = StepContext::for_test(data);
        assert_eq!(function(step).await, Ok(json!(7).into()));
    }
}

#[tokio::test]
async fn a_misfit_is_terminal_and_names_the_function_and_the_field() {
    let rows = [
        (
            json!({ "lines": [{ "cents": 5 }, { "cents": "x" }] }),
            "data of function pay: lines[1].cents: invalid type: string \"x\", expected u64",
        ),
        (json!({}), "data of function pay: missing field `lines`"),
    ];
    for (data, expected) in rows {
        let error = called(data).await.unwrap_err();
        assert_eq!((error.message(), error.is_terminal()), (expected, true));
    }
}

#[tokio::test]
async fn closures_and_functions_without_context_work() {
    let factor = 3;
    let (triple, binding) =
        step_function("triple", move |n: u32| async move { Ok::<_, StepError>(n * factor) });
    binding.bind(&State::default()).unwrap();
    assert_eq!(triple(StepContext::for_test(json!(2))).await, Ok(json!(6).into()));

    let (late, _) = step_function("late", double);
    let error = late(StepContext::for_test(json!(2))).await.unwrap_err();
    assert_eq!(error.message(), "function late is called before the start of its server");
}

fn problems(greenroom: Greenroom) -> Vec<String> {
    greenroom.checked().err().map(|Problems(problems)| problems).unwrap_or_default()
}

#[test]
fn missing_data_and_doubles_are_refused_before_the_start() {
    let village = || -> Arc<dyn Shop> { Arc::new(Village) };
    let paying = |id: &str| Workflow::new(id).step(Step::call("pay", pay));
    let missing = "function pay takes Data<dyn greenroom::typed::tests::Shop>, which is not \
                   registered: call data() with it";
    let factor = 2;
    let times = move |n: u32| async move { Ok::<_, StepError>(n * factor) };
    let inside = Block::new("b").step(Step::call("times", times));
    let nested = |id: &str| Workflow::new(id).step(Step::when("if", "true", inside.clone()));
    let forked = Workflow::new("forked").step(Step::all("both", [inside.clone()]));
    let rows = [
        (Greenroom::new().call("pay", pay), vec![missing]),
        (Greenroom::new().call("pay", pay).data_arc(village()), vec![]),
        (Greenroom::new().workflow(paying("a")).workflow(paying("b")).data_arc(village()), vec![]),
        (Greenroom::new().workflow(paying("a")), vec![missing]),
        (
            Greenroom::new().call("a", double).call("a", double),
            vec!["function a is registered twice"],
        ),
        (Greenroom::new().workflow(nested("w")), vec![]),
        (
            Greenroom::new().workflow(nested("w")).workflow(forked),
            vec![
                "function times is registered twice; a step with Step::call registers its function \
                 by the id of the step",
            ],
        ),
        (Greenroom::new().data(1_u8).data(2_u8), vec!["data of type u8 is registered twice"]),
    ];
    for (greenroom, expected) in rows {
        assert_eq!(problems(greenroom), expected);
    }
}

#[cfg(feature = "schemars")]
#[test]
fn types_have_schemas_in_both_directions() {
    use schemars::JsonSchema;

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Order {
        /// Number of the order
        number: u32,
        #[serde(default)]
        gift: bool,
        lines: Vec<Item>,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Item {
        sku: String,
    }

    let read = crate::schema::of::<Order>();
    assert_eq!(read["required"], json!(["number", "lines"]));
    assert_eq!(read["properties"]["number"]["description"], "Number of the order");
    assert_eq!(crate::schema::of_output::<Order>()["required"], json!(["number", "gift", "lines"]));
    let inline = crate::schema::inline::<Order>();
    assert_eq!(inline.get("$defs"), None);
    assert_eq!(inline["properties"]["lines"]["items"]["required"], json!(["sku"]));

    async fn total(order: Order) -> Result<u32, StepError> {
        Ok(order.number)
    }
    let workflow = Workflow::new("w")
        .input_type::<Order>()
        .step(Step::call("total", total).input_type::<Order>().output_type::<u32>());
    let greenroom = Greenroom::new().workflow(workflow).typed_tool(
        "order",
        "Finds an order",
        |order: Order| async move { Ok(order.number) },
    );
    assert_eq!(problems(greenroom), Vec::<String>::new());
    let wrong = Greenroom::new().typed_tool("wrong", "Is none", |n: u32| async move { Ok(n) });
    let expected =
        "tool wrong: parameters: arguments are an object: the schema needs type = \"object\"";
    assert_eq!(problems(wrong), [expected]);
}
