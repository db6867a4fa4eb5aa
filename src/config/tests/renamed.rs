//! Names of earlier versions, which are still accepted.

use super::problems_of;
use crate::adapters::models::{Objects, Omitted};
use crate::config::{Config, DefaultAccess, ModelConfig, RemoteConfig};

const REMOTE: &str = "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\n";

fn parsed(text: &str) -> Config {
    Config::parse(text, "c.toml").unwrap_or_else(|problems| panic!("{text}: {problems:#?}"))
}

fn remote(keys: &str) -> RemoteConfig {
    let config = parsed(&format!("{REMOTE}{keys}\n"));
    let Some(ModelConfig::Remote(remote)) = config.models.get("m") else { panic!("a model") };
    (**remote).clone()
}

#[test]
fn options_that_a_model_does_not_support_have_two_names() {
    for key in ["unsupported_options", "omit"] {
        assert_eq!(remote(&format!("{key} = [\"top_p\"]")).asked.omit, [Omitted::TopP], "{key}");
    }
}

#[test]
fn the_mode_of_objects_has_two_names() {
    for key in ["object_mode", "objects"] {
        assert_eq!(remote(&format!("{key} = \"json\"")).asked.objects, Objects::Json, "{key}");
    }
}

#[test]
fn the_retention_of_logs_has_two_names() {
    for key in ["retention", "keep"] {
        let config = parsed(&format!("[logs]\n{key} = \"3s\"\n"));
        assert_eq!(config.logs.retention.as_secs(), 3, "{key}");
    }
}

#[test]
fn the_timeout_of_a_stalled_subscriber_has_two_names() {
    for key in ["subscriber_stall_timeout", "subscriber_stall"] {
        let config = parsed(&format!("[limits]\n{key} = \"3s\"\n"));
        assert_eq!(config.runtime_limits().subscriber_stall_timeout.as_secs(), 3, "{key}");
    }
}

#[test]
fn the_standard_access_has_two_names() {
    let keys = "api_keys = [{ id = \"k\", hash = \"sha256:";
    for name in ["standard", "spec"] {
        let config = parsed(&format!("[auth]\ndefault = \"{name}\"\n{keys}{:064}\" }}]\n", 0));
        assert_eq!(config.auth.default, DefaultAccess::Spec, "{name}");
        assert_eq!(config.warnings, [], "{name}");
    }
}

#[test]
fn the_mock_has_two_names() {
    for name in ["mock", "rehearsal"] {
        let config = parsed(&format!("[models.m]\nprovider = \"{name}\"\npace = \"5ms\"\n"));
        let Some(ModelConfig::Mock(mock)) = config.models.get("m") else { panic!("{name}") };
        assert_eq!(mock.pace.as_millis(), 5, "{name}");
        assert_eq!(config.warnings, [], "{name}");
    }
}

#[test]
fn both_names_at_once_are_refused() {
    for (head, former, now) in [
        (REMOTE, "omit = []", "unsupported_options = []"),
        (REMOTE, "objects = \"json\"", "object_mode = \"json\""),
        ("[logs]\n", "keep = \"1d\"", "retention = \"1d\""),
        ("[limits]\n", "subscriber_stall = \"1s\"", "subscriber_stall_timeout = \"1s\""),
    ] {
        let problems = problems_of(&format!("{head}{former}\n{now}\n"));
        let (name, _) = now.split_once(' ').unwrap();
        let expected = format!("is the former name of `{name}`; remove one of the two");
        assert!(problems.len() == 1 && problems[0].ends_with(&expected), "{problems:?}");
        let line = format!("c.toml:{}:1: ", head.lines().count() + 1);
        assert!(problems[0].starts_with(&line), "the former name is to blame: {problems:?}");
    }
}

#[test]
fn errors_use_the_name_in_the_file() {
    let expected = "c.toml:2:8: logs.keep: must be longer than 0ms";
    assert_eq!(problems_of("[logs]\nkeep = \"0s\"\n"), [expected]);
}
