//! `[telemetry]` and the standard environment variables.

use std::time::Duration;

use crate::config::{Config, Environment, Exports};
use crate::telemetry::export::{ExporterSettings, Sampler};

/// Names and values of the environment.
type Variables<'a> = &'a [(&'a str, &'a str)];

const COLLECTOR: &str = "http://collector:4318";
/// Variable that sets a collector.
const NAMED: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", COLLECTOR);

fn exports(text: &str, variables: &[(&str, &str)]) -> Exports {
    let config = Config::parse(&format!("[telemetry]\n{text}"), "c.toml").unwrap();
    let variable = |name: &str| {
        variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    };
    config.telemetry.exports(&variable, Environment::Production)
}

fn settings(text: &str, variables: &[(&str, &str)]) -> ExporterSettings {
    let Exports { settings, warnings, problems } = exports(text, variables);
    assert_eq!((&warnings[..], &problems[..]), (&[][..], &[][..]));
    settings.unwrap()
}

/// Addresses of traces, metrics and logs.
fn addresses(exports: &Exports) -> [Option<&str>; 3] {
    let Some(settings) = &exports.settings else { return [None; 3] };
    let targets = [&settings.traces, &settings.metrics, &settings.logs];
    targets.map(|target| target.as_ref().map(|target| target.url.as_str()))
}

#[test]
fn invalid_values_are_refused_at_their_place() {
    let rows = [
        ("endpoint = \"collector:4318\"", 12, "endpoint: must begin with http:// or https://"),
        (
            "endpoint = \"no address\"",
            12,
            "endpoint: is not a valid address: relative URL \
         without a base",
        ),
        (
            "endpoint = \"http://ann:pw@c\"",
            12,
            "endpoint: must not contain a user name or a password",
        ),
        ("endpoint = \"http://c/?key=1\"", 12, "endpoint: must end with a path"),
        (
            "endpoint = \"http://c/v1/traces\"",
            12,
            "endpoint: must not end with `v1/traces`, `v1/metrics` or `v1/logs`, which are \
             appended",
        ),
        (
            "endpoint = \"http://c/${KEY}\"",
            12,
            "endpoint: `${KEY}` is allowed in keys and headers only",
        ),
        ("headers = { \"a b\" = \"x\" }", 21, "headers.\"a b\": is not a valid header name"),
        ("headers = { host = \"x\" }", 20, "headers.host: is set by the server itself"),
        ("headers = { a = 1 }", 17, "headers.a: must be a string, e.g. \"secret:COLLECTOR_KEY\""),
        (
            "resource = { \"service.name\" = \"x\" }",
            31,
            "resource.\"service.name\": is set with `service_name`",
        ),
        ("resource = { a = 1 }", 18, "resource.a: must be a string, not an integer"),
        ("sample_ratio = 1.5", 16, "sample_ratio: must be from 0 to 1"),
        ("batch = 0", 9, "batch: must be from 1 to 10000"),
        ("timeout = \"0s\"", 11, "timeout: must be longer than 0ms"),
        ("endpont = \"x\"", 1, "endpont: unknown key; did you mean endpoint?"),
    ];
    for (text, column, expected) in rows {
        let problems = Config::parse(&format!("[telemetry]\n{text}"), "c.toml").unwrap_err();
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, [format!("c.toml:2:{column}: telemetry.{expected}")], "{text}");
    }
}

#[test]
fn the_collector_is_set_by_the_file_or_the_environment() {
    let all =
        |base: &str| ["traces", "metrics", "logs"].map(|signal| Some(format!("{base}v1/{signal}")));
    let none = || [None, None, None];
    let file = "endpoint = \"https://c/otlp\"";
    let only_traces = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/any?x=1")];
    let own = [NAMED, ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://l/logs")];
    let rows: [(&str, Variables<'_>, [Option<String>; 3]); 9] = [
        ("", &[], none()),
        (file, &[], all("https://c/otlp/")),
        (file, &[NAMED], all("https://c/otlp/")),
        ("", &[NAMED], all("http://collector:4318/")),
        ("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], none()),
        ("", &only_traces[..0], none()),
        (
            "",
            &own,
            [
                all("http://collector:4318/")[0].clone(),
                all("http://collector:4318/")[1].clone(),
                Some("http://l/logs".to_owned()),
            ],
        ),
        (
            "traces = false\nlogs = false",
            &[NAMED],
            [None, all("http://collector:4318/")[1].clone(), None],
        ),
        (file, &[("OTEL_SDK_DISABLED", "TRUE")], none()),
    ];
    for (text, variables, expected) in rows {
        let found = exports(text, variables);
        let expected = expected.each_ref().map(|address| address.as_deref());
        assert_eq!(addresses(&found), expected, "{text} {variables:?}");
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    }
}

#[test]
fn invalid_variables_are_ignored_with_a_warning() {
    let rows: [(Variables<'_>, bool, &str); 9] = [
        (
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")],
            false,
            "OTEL_EXPORTER_OTLP_ENDPOINT must begin with http:// or https://; nothing is exported \
             to it",
        ),
        (
            &[NAMED, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            false,
            "OTEL_EXPORTER_OTLP_PROTOCOL selects an unsupported protocol, so nothing is exported \
             there; use http/protobuf, usually at port 4318",
        ),
        (
            &[NAMED, ("OTEL_EXPORTER_OTLP_HEADERS", "a=1,b")],
            true,
            "OTEL_EXPORTER_OTLP_HEADERS has an entry that is not `name=value`; the entry is \
             ignored",
        ),
        (
            &[NAMED, ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s")],
            true,
            "OTEL_EXPORTER_OTLP_TIMEOUT must be milliseconds, from 1 to 3600000; it is ignored",
        ),
        (
            &[NAMED, ("OTEL_METRIC_EXPORT_INTERVAL", "0")],
            true,
            "OTEL_METRIC_EXPORT_INTERVAL must be milliseconds, from 1 to 3600000; it is ignored",
        ),
        (
            &[NAMED, ("OTEL_RESOURCE_ATTRIBUTES", "a")],
            true,
            "OTEL_RESOURCE_ATTRIBUTES has an entry that is not `name=value`; the entry is ignored",
        ),
        (
            &[NAMED, ("OTEL_TRACES_SAMPLER", "jaeger_remote")],
            true,
            "OTEL_TRACES_SAMPLER is not a known sampler; all traces are exported",
        ),
        (
            &[NAMED, ("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "2")],
            true,
            "OTEL_TRACES_SAMPLER_ARG must be from 0 to 1; all traces are exported",
        ),
        (
            &[NAMED, ("SERVICE_SECRET_KEY", "a\u{7f}b")],
            true,
            "SERVICE_SECRET_KEY contains a line break or another character that is not allowed \
             in a header; it is not sent",
        ),
    ];
    for (variables, is_on, warning) in rows {
        let found = exports("", variables);
        assert_eq!(found.settings.is_some(), is_on, "{variables:?}");
        assert_eq!(found.warnings, [warning]);
    }
    // an address in the file is meant for this server, whatever the protocol of the environment
    let file = format!("endpoint = \"{COLLECTOR}\"");
    assert!(settings(&file, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).traces.is_some());
}

#[test]
fn headers_are_merged_and_the_file_takes_precedence() {
    let text = "headers = { authorization = \"Bearer ${KEY}\", x-tenant = \"two\" }";
    let variables = [
        NAMED,
        ("KEY", " k1\n"),
        ("SERVICE_PUBLIC_KEY", "pk"),
        ("SERVICE_SECRET_KEY", "sk"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=one, x-more = a%20b"),
        ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "x-more=logs"),
    ];
    let settings = settings(text, &variables);
    let shown = format!("{settings:?}");
    for (target, more) in [(settings.traces, "a b"), (settings.logs, "logs")] {
        let headers = target.unwrap().headers;
        let value = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert_eq!((value("authorization"), value("x-tenant")), ("Bearer k1".into(), "two".into()));
        assert_eq!((value("x-public-key"), value("x-secret-key")), ("pk".into(), "sk".into()));
        // the variable of one signal replaces that of all signals
        let kept = headers.get("x-more").map(|value| value.to_str().unwrap());
        assert_eq!(kept, Some(more));
    }
    assert!(!shown.contains("k1") && !shown.contains("\"sk\""), "{shown}");
    let missing = exports(text, &[NAMED]).problems;
    let problems: Vec<_> = missing.iter().map(ToString::to_string).collect();
    let expected = "c.toml:2:29: telemetry.headers.authorization: the environment variable KEY is \
                    not set";
    assert_eq!(problems, [expected]);
    assert!(exports(text, &[]).problems.is_empty(), "nothing is sent");
}

#[test]
fn the_file_overrides_the_environment() {
    let variables = [
        NAMED,
        ("OTEL_SERVICE_NAME", "named"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=a%2Cb,zone=x"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
    ];
    let from_environment = settings("", &variables);
    let attribute = |settings: &ExporterSettings, name: &str| settings.resource[name].clone();
    assert_eq!(attribute(&from_environment, "service.name"), "named");
    assert_eq!(attribute(&from_environment, "team"), "a,b");
    assert_eq!(attribute(&from_environment, "deployment.environment.name"), "production");
    let sampler = Sampler { ratio: 0.25, follows_caller: false };
    assert_eq!(from_environment.sampler, sampler);
    assert_eq!(from_environment.traces.unwrap().timeout, Duration::from_millis(2_500));
    assert_eq!(from_environment.interval, Duration::from_millis(1_500));
    let text = "service_name = \"clerk\"\nresource = { zone = \"y\" }\nsample_ratio = 0.5\n\
                timeout = \"3s\"\ninterval = \"9s\"";
    let from_file = settings(text, &variables);
    assert_eq!(attribute(&from_file, "service.name"), "clerk");
    assert_eq!(
        (attribute(&from_file, "zone"), attribute(&from_file, "team")),
        ("y".into(), "a,b".into())
    );
    assert_eq!(from_file.sampler, Sampler { ratio: 0.5, follows_caller: true });
    assert_eq!(from_file.logs.unwrap().timeout, Duration::from_secs(3));
    assert_eq!(from_file.interval, Duration::from_secs(9));
    assert_eq!(settings("", &[NAMED]).interval, Duration::from_secs(60));
    assert_eq!(attribute(&settings("", &[NAMED]), "service.name"), "greenroom");
}
