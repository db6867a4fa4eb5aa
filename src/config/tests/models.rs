//! Models of providers.

use std::time::Duration;

use crate::adapters::models::{Objects, Omitted, RetryPolicy};
use crate::config::{Config, ModelConfig, RemoteConfig};

use super::problems_of;

fn remote(text: &str) -> RemoteConfig {
    let config = Config::parse(text, "c.toml").unwrap();
    match config.models["m"].clone() {
        ModelConfig::Remote(remote) => *remote,
        ModelConfig::Mock(_) => panic!("{text}"),
    }
}

#[test]
fn defaults_and_all_keys_of_a_model() {
    let small =
        remote("[models.m]\nprovider = \"anthropic\"\nmodel = \"c\"\napi_key = \"secret:KEY\"\n");
    assert_eq!(small.key_variable.as_deref(), Some("KEY"));
    assert_eq!((small.retry, small.total), (RetryPolicy::default(), Duration::from_secs(300)));
    assert_eq!(small.asked.first_token, Duration::from_secs(30));
    assert_eq!((small.asked.objects, small.asked.stream), (Objects::Native, true));
    assert_eq!((small.asked.omit, small.fallback, small.asked.base_url), (vec![], vec![], None));

    let full = remote(
        "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://10.0.0.1:8000/v1\"\n\
         api_key = \"${KEY}\"\nretry = { attempts = 1, delay = \"1s\", factor = 3, max_delay = \
         \"9s\" }\ntimeouts = { first_token = \"5s\", total = \"7s\" }\nfallback = \
         [\"n\"]\nunsupported_options = \
         [\"topP\", \"seed\"]\nobject_mode = \"json\"\nstream = false\n\
         [models.n]\nprovider = \"mock\"\npace = \"5ms\"\n",
    );
    assert_eq!(full.asked.base_url.unwrap().as_str(), "http://10.0.0.1:8000/v1/");
    let seconds = Duration::from_secs;
    let retry = RetryPolicy { attempts: 1, delay: seconds(1), factor: 3.0, max_delay: seconds(9) };
    assert_eq!((full.retry, full.asked.first_token, full.total), (retry, seconds(5), seconds(7)));
    assert_eq!(full.asked.omit, [Omitted::TopP, Omitted::Seed]);
    assert_eq!((full.asked.objects, full.asked.stream), (Objects::Json, false));
    assert_eq!(full.fallback, ["n"]);
}

const HEAD: &str = "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\n";

fn check<const N: usize>(rows: [(String, &[&str]); N]) {
    for (text, expected) in rows {
        let problems = problems_of(&text);
        assert_eq!(problems, expected, "for {text}");
        assert!(!problems.concat().contains("canary"), "{problems:?}");
    }
}

#[test]
fn mistakes_in_addresses_and_keys_do_not_repeat_the_value() {
    let head = HEAD;
    let rows: [(String, &[&str]); 5] = [
        (
            head.to_owned(),
            &["c.toml:1:1: models.m: key `api_key` is missing, e.g. api_key = \
            \"secret:OPENAI_API_KEY\""],
        ),
        (
            format!("{head}api_key = \"sk-canary\"\n"),
            &["c.toml:4:11: models.m.api_key: must name an environment variable, e.g. \
            \"secret:OPENAI_API_KEY\""],
        ),
        (
            format!("{head}base_url = \"ftp://h\"\n"),
            &["c.toml:4:12: models.m.base_url: must begin with http:// or https://"],
        ),
        (
            format!("{head}base_url = \"http://u:canary@h\"\n"),
            &["c.toml:4:12: models.m.base_url: must not contain a user name or a password"],
        ),
        (
            format!("{head}base_url = \"http://h/?key=canary\"\n"),
            &["c.toml:4:12: models.m.base_url: must end with a path"],
        ),
    ];
    check(rows);
}

#[test]
fn mistakes_in_fallbacks_and_lists() {
    let local = format!("{HEAD}base_url = \"http://h\"\n");
    let rows: [(String, &[&str]); 6] = [
        (
            format!("{local}unsupported_options = [\"temprature\"]\n"),
            &["c.toml:5:24: models.m.unsupported_options[0]: must be one of temperature, \
                 max_output_tokens, top_p, \
            frequency_penalty, presence_penalty, seed, stop_sequences, parallel_tool_calls, \
            provider_options; did you \
            mean temperature?"],
        ),
        (
            format!("{local}object_mode = \"nativ\"\n"),
            &["c.toml:5:15: models.m.object_mode: must be one of native, json, instruction; \
                 did you mean \
            native?"],
        ),
        (
            format!("{local}fallback = [\"x\"]\n"),
            &["c.toml:5:13: models.m.fallback[0]: model x is not configured; configured: m"],
        ),
        (
            format!("{local}fallback = [\"m\"]\n"),
            &["c.toml:5:12: models.m.fallback: leads back to m: m"],
        ),
        (
            format!(
                "{local}fallback = [\"n\"]\n[models.n]\nprovider = \"ollama\"\nmodel = \
                  \"x\"\nfallback = [\"m\"]\n"
            ),
            &[
                "c.toml:5:12: models.m.fallback: leads back to m: n, then m",
                "c.toml:9:12: models.n.fallback: leads back to n: m, then n",
            ],
        ),
        (
            format!("{local}retry = {{ attempts = 0, factor = 0.5, dely = \"1s\" }}\n"),
            &[
                "c.toml:5:22: models.m.retry.attempts: must be from 1 to 100",
                "c.toml:5:34: models.m.retry.factor: must be from 1 to 100",
                "c.toml:5:39: models.m.retry.dely: unknown key; did you mean delay?",
            ],
        ),
    ];
    check(rows);
}

#[test]
fn a_missing_key_is_an_error_if_one_is_needed() {
    let environment = |name: &str| match name {
        "SET" => Some(" canary ".to_owned()),
        "EMPTY" => Some(String::new()),
        "ODD" => Some("a\u{7}b".to_owned()),
        _ => None,
    };
    let model = |key: &str, more: &str| {
        format!(
            "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\napi_key = \"secret:{key}\"\n{more}"
        )
    };
    let problem = |text: &str| {
        Some(format!("c.toml:4:11: models.m.api_key: the environment variable {text}"))
    };
    let rows = [
        (model("SET", ""), None),
        (model("UNSET", ""), problem("UNSET is not set")),
        (model("EMPTY", ""), problem("EMPTY is empty")),
        (model("ODD", ""), problem("ODD contains characters that no key may have")),
        (model("UNSET", "base_url = \"http://h\"\n"), problem("UNSET is not set")),
        (model("UNSET", "base_url = \"http://127.0.0.1:1\"\n"), None),
        (model("UNSET", "base_url = \"http://[::1]:1\"\n"), None),
        ("[models.m]\nprovider = \"ollama\"\nmodel = \"m\"\n".to_owned(), None),
    ];
    for (text, expected) in rows {
        let config = Config::parse(&text, "c.toml").unwrap();
        let missing = config.check_secrets(environment);
        assert_eq!(missing.first().map(ToString::to_string), expected, "for {text}");
    }
}
