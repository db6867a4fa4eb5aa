//! A server with workflows made to be interrupted. It is the test binary itself, started again with
//! [`SERVE`] in its environment.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::mcp_face::fixtures::{FIXTURES, with_fixtures};
use greenroom::Greenroom;
use greenroom::builder::{Block, Retry, Step, Suspend, Workflow};
use greenroom_actors::agent::{Approval, ToolAsk};
use greenroom_actors::function::{StepContext, StepError, StepOutcome};
use serde_json::{Value, json};
use support::server::{LEDGER, LINE, SERVE};

/// Environment variable: the program installs another logger.
pub(crate) const OWN_LOGGER: &str = "GREENROOM_TEST_LOGGER";
/// Environment variable: the server is beside the rest of a program, which stops it once the file of
/// this name is there, says [`GOES_ON`], and continues.
pub(crate) const BESIDE: &str = "GREENROOM_TEST_STOP_FILE";
/// Last line of the log of such a program.
pub(crate) const GOES_ON: &str = "the program goes on without its server";
/// While this file exists, `stand` does not continue.
pub(crate) const HELD: &str = "held";

/// Serves if this process was started as a server, and then never returns.
pub(crate) fn serve_if_asked() {
    let Some(config) = std::env::var_os(SERVE) else { return };
    if std::env::var_os(OWN_LOGGER).is_some() {
        log::set_logger(&OwnLogger).unwrap();
        log::set_max_level(log::LevelFilter::Info);
    }
    let greenroom = registered(Greenroom::from_config(config).unwrap());
    if let Some(stop_file) = std::env::var_os(BESIDE) {
        run_beside(greenroom, stop_file.as_ref());
    }
    let served = greenroom.serve();
    if let Err(error) = &served {
        eprintln!("greenroom: {error}");
    }
    std::process::exit(i32::from(served.is_err()));
}

/// Runs a program that stops its server and continues until it is killed.
fn run_beside(greenroom: Greenroom, stop_file: &Path) -> ! {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = greenroom.start().await.unwrap();
        while !stop_file.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server.stop().await.unwrap();
    });
    eprintln!("{GOES_ON}");
    loop {
        std::thread::park();
    }
}

/// Prints log records.
struct OwnLogger;

impl log::Log for OwnLogger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        eprintln!("own: {}", record.args());
    }

    fn flush(&self) {}
}

fn registered(greenroom: Greenroom) -> Greenroom {
    let greenroom = greenroom
        .function("work", work)
        .function("gate", gate)
        .function("stand", stand)
        .function("block", block)
        .function("flaky", flaky)
        .function("ask", ask)
        .function("panic", |_| async { panic!("a step that panics") })
        .function("abort", abort);
    let greenroom = workflows().into_iter().fold(with_tools(greenroom), Greenroom::workflow);
    match std::env::var_os(FIXTURES) {
        Some(_) => with_fixtures(greenroom),
        None => greenroom,
    }
}

/// Registers tools that ask people.
fn with_tools(greenroom: Greenroom) -> Greenroom {
    let parameters = json!({ "type": "object", "required": ["amount"],
        "properties": { "amount": { "type": "integer" } } });
    let approval = Approval::when("args.amount > 100").unwrap();
    let approval = approval.reason("Refund {{ args.amount }}").unwrap().edit();
    let payment = json!({ "type": "object", "required": ["amount"],
        "properties": { "amount": { "type": "integer" }, "pause": { "type": "integer" } } });
    let signed = Approval::when("args.amount % 10 < 3").unwrap();
    let signed = signed.reason("Pay {{ args.amount }}").unwrap();
    let color = json!({ "type": "string", "enum": ["blue", "red"] });
    greenroom
        .tool("refund", "Refunds", parameters, |arguments, context| async move {
            let key = &context.idempotency_key;
            append_line(&format!("refund {} {key}", arguments["amount"])).unwrap();
            Ok(json!({ "refunded": arguments["amount"] }))
        })
        .approval("refund", approval)
        .tool("pay", "Pays", payment, |arguments, context| async move {
            let amount = &arguments["amount"];
            append_line(&format!("pay {amount} {}", context.idempotency_key)).unwrap();
            let pause = arguments["pause"].as_u64().unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(pause)).await;
            Ok(json!({ "paid": amount }))
        })
        .approval("pay", signed)
        .tool("paint", "Paints", json!({ "type": "object" }), move |_, context| {
            let ask = ToolAsk::new("Which color?").schema(color.clone());
            async move { Ok(json!({ "painted": context.ask(ask)? })) }
        })
}

fn workflows() -> Vec<Workflow> {
    let approval = Suspend::always().reason("round {{ data.n }}");
    let answered = json!({ "type": "object", "required": ["approved"],
        "properties": { "approved": { "type": "boolean" } } });
    let block = |name: &str, id: &str| Block::new(name).step(Step::run(id, "work"));
    vec![
        Workflow::new("chain")
            .step(Step::run("one", "work"))
            .step(Step::run("two", "work"))
            .step(Step::run("three", "work")),
        Workflow::new("approval")
            .step(Step::run("before", "work"))
            .step(Step::run("decide", "work").suspend(approval).resume_schema(answered))
            .step(Step::run("after", "work")),
        Workflow::new("nap")
            .step(Step::run("before", "work"))
            .step(Step::sleep("nap", Duration::from_millis(40)))
            .step(Step::run("after", "work")),
        Workflow::new("fan")
            .step(Step::all("both", [block("left", "l"), block("right", "r")]))
            .step(Step::map("sum", json!({ "n": "data[0].n + data[1].n", "pause": "input.pause" })))
            .step(Step::run("after", "work")),
        Workflow::new("family")
            .step(Step::run("before", "work"))
            .step(Step::workflow("child", "approval"))
            .step(Step::run("after", "work")),
        Workflow::new("nest")
            .step(Step::workflow("child", "chain"))
            .step(Step::run("after", "work")),
        Workflow::new("gated").step(Step::run("wait", "gate")).step(Step::run("after", "work")),
        Workflow::new("flaky").step(
            Step::run("try", "flaky").retry(Retry::attempts(3).delay(Duration::from_millis(1))),
        ),
        Workflow::new("asking").step(Step::run("ask", "ask")),
        Workflow::new("blocking").step(Step::run("block", "block")),
        Workflow::new("panicking").step(Step::run("fall", "panic")),
        Workflow::new("aborting").step(Step::run("crash", "abort")),
    ]
}

/// Appends a line, pauses, adds one, and appends another line.
async fn work(step: StepContext) -> Result<StepOutcome, StepError> {
    note(&step)?;
    let pause = step.data["pause"].as_u64().unwrap_or(0);
    if pause > 0 {
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    append(&step, " ended")?;
    Ok(counted(&step).into())
}

/// Returns the data with its number increased by one.
fn counted(step: &StepContext) -> Value {
    let mut data = Value::clone(&step.data);
    data["n"] = json!(data["n"].as_u64().unwrap_or(0) + 1);
    data
}

/// Waits until no file [`HELD`] is beside the configuration, unless the data has `passes`.
async fn stand(step: StepContext) -> Result<StepOutcome, StepError> {
    note(&step)?;
    while step.data["passes"] != true && std::path::Path::new(HELD).exists() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(counted(&step).into())
}

/// Blocks its thread while there is a file [`HELD`] beside the configuration.
async fn block(_: StepContext) -> Result<StepOutcome, StepError> {
    while std::path::Path::new(HELD).exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(json!({}).into())
}

/// Waits for the file that the input names.
async fn gate(step: StepContext) -> Result<StepOutcome, StepError> {
    note(&step)?;
    let path = step.input["gate"].as_str().ok_or("no gate")?.to_owned();
    while !std::path::Path::new(&path).exists() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(json!({ "n": 1 }).into())
}

/// Fails as often as the input requests.
async fn flaky(step: StepContext) -> Result<StepOutcome, StepError> {
    note(&step)?;
    if u64::from(step.attempt) <= step.input["fails"].as_u64().unwrap_or(0) {
        return Err(format!("attempt {} failed", step.attempt).into());
    }
    Ok(json!({ "attempt": step.attempt }).into())
}

/// Suspends from within the function.
async fn ask(step: StepContext) -> Result<StepOutcome, StepError> {
    Ok(match &step.resume {
        Some(answer) => json!({ "answer": Value::clone(answer) }).into(),
        None => {
            let payload = Some(json!({ "question": step.input["question"] }));
            StepOutcome::Suspended { reason: Some("asked".to_owned()), payload }
        }
    })
}

/// Aborts the server on every attempt.
async fn abort(step: StepContext) -> Result<StepOutcome, StepError> {
    note(&step)?;
    std::process::abort()
}

/// Appends a line for the begin of an attempt.
fn note(step: &StepContext) -> Result<(), StepError> {
    append(step, "")
}

/// Appends one line in one write: execution, path, attempt, key, and the word of an end.
fn append(step: &StepContext, end: &str) -> Result<(), StepError> {
    let StepContext { execution_id, path, attempt, idempotency_key, .. } = step;
    let line = format!("{execution_id} {path} {attempt} {idempotency_key}{end}");
    Ok(append_line(&line)?)
}

/// Appends one line of [`LINE`] bytes.
fn append_line(line: &str) -> std::io::Result<()> {
    let width = LINE - 1;
    if line.len() > width {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let ledger = std::env::var_os(LEDGER).ok_or(std::io::ErrorKind::NotFound)?;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(ledger)?;
    file.write_all(format!("{line:width$}\n").as_bytes())
}
