//! Ownership of traces and log records.

use greenroom_actors::observe::log_record::{LogLevel, LogScope};

use super::*;
use crate::web::tests::observability::record;

#[actix_web::test]
async fn traces_and_records_belong_to_their_user() {
    let site = owned().await;
    let body = json!({ "input": { "n": 1 } });
    let mut traces = Vec::new();
    for who in ["ann", "ben"] {
        let answer = site.ask(who, "POST /workflows/noop/execute", Some(&body)).await;
        let trace = answer.header("x-trace-id").unwrap().to_owned();
        let path = format!("GET /observability/traces/{trace}");
        let shown = site.data_for(who, &path, None).await;
        let span = shown["spans"][0]["spanId"].as_str().unwrap().to_owned();
        let scope = LogScope {
            trace_id: Some(trace.as_str().into()),
            span_id: span.parse().ok(),
            user_id: Some(who.into()),
            ..LogScope::default()
        };
        site.log(vec![record(1_000, LogLevel::Info, who, scope)]).await;
        traces.push((trace, span));
    }
    site.log(vec![record(2_000, LogLevel::Info, "server", LogScope::default())]).await;

    let (trace, span) = &traces[0];
    let none = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let paths = [
        ("GET /observability/traces/!", trace, none.0),
        ("GET /observability/traces/!/logs", trace, none.0),
        ("GET /observability/traces/!/logs?limit=x", trace, none.0),
        ("GET /observability/spans/!", span, none.1),
        ("GET /observability/spans/!/logs", span, none.1),
    ];
    for (request, id, none) in paths {
        let missing = site.ask("ben", &request.replace('!', none), None).await;
        assert_eq!(missing.status, 404, "{request}: {}", missing.body);
        for stranger in ["ben", "robot"] {
            let answer = site.ask(stranger, &request.replace('!', id), None).await;
            assert_eq!(observable(&answer, id), observable(&missing, none), "{stranger} {request}");
        }
        let anonymous = site.get(&request.replace('!', id)["GET ".len()..]).await;
        assert_eq!(anonymous.status, 401, "{request}");
        let expected = if request.ends_with("=x") { 400 } else { 200 };
        for who in ["ann", "eve"] {
            let own = site.ask(who, &request.replace('!', id), None).await;
            assert_eq!(own.status, expected, "{who} {request}: {}", own.body);
        }
    }

    let rows = [("ann", 1, "ann"), ("ben", 1, "ben"), ("robot", 0, ""), ("eve", 2, "annbenserver")];
    for (who, count, messages) in rows {
        let list = site.data_for(who, "GET /observability/traces", None).await;
        assert_eq!(list["traces"].as_array().unwrap().len(), count, "{who}");
        for (path, rows, word) in
            [("/observability/logs", "/data/logs", "body"), ("/api/logs", "/data", "msg")]
        {
            let answer = site.ask(who, &format!("GET {path}"), None).await.json();
            let rows = answer.pointer(rows).unwrap().as_array().unwrap();
            let found: String = rows.iter().map(|row| row[word].as_str().unwrap()).collect();
            assert_eq!(found, messages, "{who} {path}");
        }
    }
}
