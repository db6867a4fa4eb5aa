//! A tokio program with a server in it: it consumes a queue, and each message starts a workflow.
//!
//! ```text
//! cargo run --example beside_tokio
//! ```

use std::error::Error;

use greenroom::config::StoreUrl;
use greenroom::prelude::*;
use serde_json::json;
use tokio::sync::mpsc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (sender, messages) = mpsc::channel(10);
    tokio::spawn(async move {
        for amount in [3, 4] {
            // an error: the consumer is gone
            let _ = sender.send(amount).await;
        }
    });
    for result in consume(server(), messages).await? {
        log::info!("doubled: {result}");
    }
    Ok(())
}

fn server() -> Greenroom {
    let double = Workflow::new("double").step(Step::map("twice", json!("input * 2")));
    Greenroom::new()
        .configure(|config| {
            config.server.port = 0;
            config.store.url = StoreUrl::Memory;
        })
        .workflow(double)
}

/// Starts a workflow for each message until there are no more, and returns the results.
async fn consume(
    server: Greenroom,
    mut messages: mpsc::Receiver<u64>,
) -> Result<Vec<u64>, Box<dyn Error>> {
    let server = server.start().await?;
    let mut results = Vec::new();
    while let Some(amount) = messages.recv().await {
        let run = server.handle().start("double", &amount).await?;
        results.push(run.returning::<u64>().result().await?);
    }
    server.stop().await?;
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_message_starts_a_workflow() {
        let (sender, messages) = mpsc::channel(2);
        for amount in [3, 4] {
            sender.send(amount).await.unwrap();
        }
        drop(sender);
        assert_eq!(consume(server(), messages).await.unwrap(), [6, 8]);
    }
}
