//! The files of `docs/deploy`, as far as they can be checked without the services that read them:
//! configurations by `greenroom check`, YAML by Python, and nginx, systemd and PostgreSQL by their own
//! programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::not_tested;

use crate::openapi::python;

/// A key of 32 bytes.
const SECRET: &str = "only-for-this-test-0123456789abcdef";
/// Configurations of greenroom.
const CONFIGURATIONS: [&str; 3] = ["compose.toml", "greenroom.toml", "kubernetes/config.toml"];
/// Time that a stop can take beyond `server.shutdown_grace`: `store.patience` and 20 seconds.
const BEYOND_GRACE_S: u64 = 30;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/deploy").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the variables that a configuration names, sorted.
fn variables(configuration: &str) -> Vec<String> {
    let written = text(configuration);
    let lines = written.lines().filter(|line| !line.starts_with('#'));
    let after = lines.flat_map(|line| {
        let braced = line.split("${").skip(1);
        braced.chain(line.split("\"secret:").skip(1)).collect::<Vec<_>>()
    });
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let mut names: Vec<_> =
        after.map(|rest| rest.split(is_end).next().unwrap_or_default().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns `shutdown_grace` of a configuration, in seconds.
fn grace_s(configuration: &str) -> u64 {
    let config: toml::Table = text(configuration).parse().unwrap();
    let grace = config["server"]["shutdown_grace"].as_str().unwrap();
    grace.strip_suffix('s').unwrap().parse().unwrap()
}

#[test]
fn configurations_are_accepted_without_warnings() {
    for name in CONFIGURATIONS {
        let mut check = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        check.args(["check", "--strict", "--config"]).arg(path(name)).env_clear();
        let missing = check.output().unwrap();
        assert!(!missing.status.success(), "{name} names variables");
        for variable in variables(name) {
            check.env(variable, SECRET);
        }
        let output = check.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{name}: {said}");
        assert!(said.contains("PostgreSQL at "), "{name}: {said}");
    }
}

/// Returns the documents of a file in YAML, or `None` where Python has no reader of it.
fn yaml(name: &str) -> Option<Vec<Value>> {
    let Some(python) = python() else {
        not_tested("files of docs/deploy in YAML", "Python with PyYAML is missing.");
        return None;
    };
    let program = "import json, sys, yaml\n\
                   print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1], encoding='utf-8')))))";
    let mut command = Command::new(python.join("python"));
    let output = command.args(["-c", program]).arg(path(name)).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn names(list: &Value) -> Vec<String> {
    let name = |it: &Value| it["name"].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn the_kubernetes_files_fit_each_other() {
    let Some(kustomization) = yaml("kubernetes/kustomization.yaml") else { return };
    let generated = &kustomization[0]["configMapGenerator"][0];
    assert_eq!(generated["files"], serde_json::json!(["config.toml"]));
    let mut objects = Vec::new();
    for name in kustomization[0]["resources"].as_array().unwrap() {
        objects.extend(yaml(&format!("kubernetes/{}", name.as_str().unwrap())).unwrap());
    }
    let find = |kind: &str| objects.iter().find(|it| it["kind"] == kind).expect(kind);
    let set = &find("StatefulSet")["spec"];
    assert_eq!(set["replicas"], 3);
    let labels = &set["template"]["metadata"]["labels"];
    for selector in [
        &set["selector"]["matchLabels"],
        &find("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        &find("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ] {
        assert_eq!(selector, labels);
    }
    assert_eq!(find("PodDisruptionBudget")["spec"]["maxUnavailable"], 1);
    let services: Vec<_> = objects.iter().filter(|it| it["kind"] == "Service").collect();
    assert!(services.iter().all(|it| it["spec"]["selector"] == *labels));
    assert!(services.iter().any(|it| it["metadata"]["name"] == set["serviceName"]));

    let pod = &set["template"]["spec"];
    let container = &pod["containers"][0];
    let mut given = names(&container["env"]);
    given.retain(|name| name != "NODE_ENV");
    given.sort();
    assert_eq!(given, variables("kubernetes/config.toml"));
    assert_eq!(names(&container["ports"]), ["http", "links"]);
    let links = &find("NetworkPolicy")["spec"]["ingress"][1];
    assert_eq!(links["ports"][0]["port"], "links");
    assert_eq!(links["from"][0]["podSelector"]["matchLabels"], *labels);
    let mounts = names(&container["volumeMounts"]);
    assert_eq!(mounts, names(&pod["volumes"]));
    let volume = &pod["volumes"][0]["configMap"];
    assert_eq!(volume["name"], generated["name"]);

    let sleep = container["lifecycle"]["preStop"]["exec"]["command"][1].as_str().unwrap();
    let needed = sleep.parse::<u64>().unwrap() + grace_s("kubernetes/config.toml") + BEYOND_GRACE_S;
    assert_eq!(pod["terminationGracePeriodSeconds"], needed);
    let user = &pod["securityContext"]["runAsUser"];
    assert!(text("Dockerfile").contains(&format!("\nUSER {user}:{user}\n")));
    for (probe, page) in
        [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")]
    {
        assert_eq!(container[probe]["httpGet"]["path"], page, "{probe}");
    }
}

#[test]
fn the_compose_file_fits_its_configuration() {
    let Some(compose) = yaml("compose.yaml") else { return };
    let services = compose[0]["services"].as_object().unwrap();
    let nodes: Vec<_> = services.iter().filter(|(_, it)| it.get("build").is_some()).collect();
    assert_eq!(nodes.len(), 3);
    for (name, node) in nodes {
        let environment = node["environment"].as_object().unwrap();
        let mut given: Vec<_> = environment.keys().cloned().collect();
        given.sort();
        assert_eq!(given, variables("compose.toml"), "{name}");
        assert_eq!(environment["NODE"], **name);
        assert_eq!(
            node["stop_grace_period"],
            format!("{}s", grace_s("compose.toml") + BEYOND_GRACE_S)
        );
        let build = &node["build"];
        let context = path(build["context"].as_str().unwrap());
        assert!(context.join(build["dockerfile"].as_str().unwrap()).is_file(), "{build}");
        assert!(text("nginx.conf").contains(&format!("server {name}:3141 ")), "{name}");
        assert_eq!(services["nginx"]["depends_on"][name]["condition"], "service_healthy");
    }
    for (name, service) in services {
        for volume in service["volumes"].as_array().unwrap() {
            let (from, _) = volume.as_str().unwrap().split_once(':').unwrap();
            let is_there = match from.strip_prefix("./") {
                Some(file) => path(file).is_file(),
                None => compose[0]["volumes"].get(from).is_some(),
            };
            assert!(is_there, "{name}: {from}");
        }
    }
    let url = "@database/greenroom";
    assert!(services.contains_key("database") && text("compose.toml").contains(url));
}

#[test]
fn the_settings_of_patroni_fit_each_other() {
    let Some(patroni) = yaml("patroni.yml") else { return };
    let seconds = |key: &str| patroni[0][key].as_u64().expect(key);
    assert!(seconds("ttl") >= seconds("loop_wait") + 2 * seconds("retry_timeout"));
    assert_eq!(patroni[0]["synchronous_mode"], true);
    assert_eq!(patroni[0]["postgresql"]["use_pg_rewind"], true);
    let settings = postgresql_settings();
    for (name, value) in patroni[0]["postgresql"]["parameters"].as_object().unwrap() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let same = settings.iter().find(|(known, _)| known == name);
        assert!(same.is_none_or(|(_, known)| *known == value), "{name}: {value}");
    }
}

/// Returns the settings of `postgresql.conf`.
fn postgresql_settings() -> Vec<(String, String)> {
    let text = text("postgresql.conf");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let setting = |line: &str| {
        let (name, value) = line.split_once(" = ").expect("a setting");
        (name.to_owned(), value.to_owned())
    };
    lines.map(setting).collect()
}

#[cfg(feature = "postgres")]
#[test]
fn postgresql_takes_its_settings() {
    use crate::program::Programs as _;
    use support::postgres::{Auth, Server as Database};
    use support::server::{Home, Server};

    let settings = postgresql_settings();
    // memory that a machine of tests may not have
    let fitting = settings.iter().filter(|(name, _)| name != "shared_buffers");
    let fitting: Vec<_> = fitting.map(|(name, value)| (&**name, &**value)).collect();
    let Some(database) = Database::start_with(Auth::Trust, &fitting) else { return };
    for (name, value) in fitting {
        assert_eq!(database.sql(&format!("SHOW {name}")), value, "{name}");
    }
    let url = database.fresh_url();
    let home = Home::at(&url, "");
    let _server = Server::start(home.greenroom(&[]));
    database.answer(&url, &text("postgresql.sql")).unwrap();
    let changed = "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace \
                   AND 'autovacuum_vacuum_scale_factor=0.02' = ANY(reloptions)";
    assert_eq!(database.answer(&url, changed).unwrap(), "5");
}

#[test]
fn the_configuration_of_the_debian_package_is_accepted() {
    let mut check = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    let output = check.args(["check", "--strict", "--config"]).arg(path("deb/config.toml"));
    let output = output.env_clear().output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    // both have the same unit
    assert_eq!(grace_s("deb/config.toml"), grace_s("greenroom.toml"));
}

#[test]
fn systemd_accepts_the_unit() {
    let unit = text("greenroom.service");
    let stop = format!("TimeoutStopSec={}s\n", grace_s("greenroom.toml") + BEYOND_GRACE_S);
    assert!(unit.contains("RestartForceExitStatus=75\n"));
    assert!(unit.contains(&stop), "{stop}");
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else {
        not_tested("the unit of systemd", "systemd-analyze is missing.");
        return;
    };
    assert!(version.status.success());
    let folder = tempfile::tempdir().unwrap();
    // it looks for the program
    let unit =
        unit.replace("/usr/local/bin/greenroom ", concat!(env!("CARGO_BIN_EXE_greenroom"), " "));
    let file = folder.path().join("greenroom.service");
    std::fs::write(&file, unit).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("greenroom.service"), "{said}");
}
