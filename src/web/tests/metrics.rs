//! Series of request metrics.

use super::*;
use crate::telemetry::metrics::Metrics;

async fn counted() -> Site {
    let metrics = Metrics::new(&registry(), 1_000).unwrap();
    Site::start(WebConfig { metrics: Some(Arc::new(metrics)), ..WebConfig::default() }).await
}

fn requests(metrics: &str) -> Vec<&str> {
    metrics.lines().filter_map(|line| line.strip_prefix("http_requests_total")).collect()
}

#[actix_web::test]
async fn requests_are_counted_by_the_route_that_took_them() {
    let site = counted().await;
    for id in ["one", "two"] {
        site.get(&format!("/workflows/{id}")).await;
        site.send("DELETE", &format!("/workflows/{id}"), "", None).await;
    }
    site.get("/workflows/a/b/c").await;
    site.send("BREW", "/nowhere", "", None).await;
    site.send("HEAD", "/livez", "", None).await;
    let strange = "origin: https://elsewhere.example\r\n";
    site.send("POST", "/workflows/noop/execute", strange, Some("{}")).await;
    let shown = site.get("/metrics").await;
    assert_eq!(
        requests(&shown.body),
        [
            r#"{method="DELETE",route="/workflows/:id",status="405"} 2"#,
            r#"{method="GET",route="/workflows/:id",status="404"} 2"#,
            r#"{method="GET",route="unmatched",status="404"} 1"#,
            r#"{method="HEAD",route="/livez",status="200"} 1"#,
            // Refused before routing.
            r#"{method="POST",route="unmatched",status="403"} 1"#,
            r#"{method="_OTHER",route="unmatched",status="404"} 1"#,
        ]
    );
    assert!(shown.body.contains("\nhttp_server_active_requests 1\n"), "its own");
}

#[actix_web::test]
async fn metrics_are_in_the_text_format_of_prometheus() {
    let site = counted().await;
    let accept = "accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.4\r\n";
    for accept in ["", accept] {
        let answer = site.send("GET", "/metrics", accept, None).await;
        let kind = "text/plain; version=0.0.4; charset=utf-8";
        assert_eq!(answer.header("content-type"), Some(kind), "{accept}");
    }
    let head = site.send("HEAD", "/metrics", "", None).await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}
