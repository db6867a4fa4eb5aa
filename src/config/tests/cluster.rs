//! `[cluster]`: addresses of servers, and encryption between them.

use super::problems_of;
use super::refusals::refused;
use crate::config::{ClusterTls, Config};

const STORE: &str = "[store]\nurl = \"postgres://ann@db/shop\"\n";

fn parse(keys: &str) -> Config {
    Config::parse(&format!("{STORE}[cluster]\n{keys}"), "c.toml").unwrap()
}

#[test]
fn a_server_of_a_cluster_needs_a_database() {
    refused(&[(
        "[cluster]\nlisten = \"127.0.0.1:3142\"\n",
        &["c.toml:2:10: cluster.listen: needs a store in PostgreSQL (`url` under [store])"],
    )]);
}

#[cfg(feature = "postgres")]
#[test]
fn mistakes_in_a_cluster_have_their_place() {
    let open = "other machines can reach it: set `certificate`, `key` and `ca`, or \
        `trusted_network = true` if nothing but the servers of this database can";
    let address = "must be an IP address and a port, such as \"10.0.0.5:3142\"";
    let advertised = "must be a host and a port, such as \"node-a.internal:3142\"";
    for (keys, problem) in [
        ("listen = \"10.0.0.5:3142\"", format!("4:10: cluster.listen: {open}")),
        ("listen = \"10.0.0.5\"", format!("4:10: cluster.listen: {address}")),
        ("listen = \"node-a:3142\"", format!("4:10: cluster.listen: {address}")),
        (
            "listen = \"0.0.0.0:3142\"\ntrusted_network = true",
            "4:10: cluster.listen: is no address that others can connect to: set `advertise` as \
             well"
                .to_owned(),
        ),
        ("advertise = \"node-a\"", format!("4:13: cluster.advertise: {advertised}")),
        ("advertise = \"node-a:0\"", format!("4:13: cluster.advertise: {advertised}")),
        ("advertise = \"${HOST}\"", format!("4:13: cluster.advertise: {advertised}")),
        (
            "advertise = \"${a b}:1\"",
            "4:13: cluster.advertise: has `${` without the name of a variable, as in `${POD_IP}`"
                .to_owned(),
        ),
        (
            "advertise = \"secret:HOST:1\"",
            "4:13: cluster.advertise: is no secret; write `${NAME}` for an environment variable"
                .to_owned(),
        ),
        ("lease = \"500ms\"", "4:9: cluster.lease: must be at least 600ms".to_owned()),
        (
            "listen = \"127.0.0.1:3142\"\nkey = \"a.key\"",
            "5:7: cluster.key: needs all of `certificate`, `key` and `ca`".to_owned(),
        ),
    ] {
        let text = format!("{STORE}[cluster]\n{keys}\n");
        refused(&[(&text, &[&format!("c.toml:{problem}")])]);
    }
}

#[cfg(feature = "postgres")]
#[test]
fn addresses_that_only_servers_can_reach_need_no_encryption() {
    for keys in [
        "listen = \"127.0.0.1:3142\"",
        "listen = \"[::1]:0\"",
        "listen = \"10.0.0.5:3142\"\ntrusted_network = true",
        "listen = \"0.0.0.0:3142\"\nadvertise = \"node-a:3142\"\ntrusted_network = true",
        "listen = \"10.0.0.5:3142\"\ncertificate = \"a.pem\"\nkey = \"a.key\"\nca = \"ca.pem\"",
    ] {
        let config = parse(keys);
        assert_eq!(config.warnings, [], "{keys}");
        assert_eq!(config.cluster.tls().is_some(), keys.contains("ca ="), "{keys}");
    }
}

#[cfg(feature = "postgres")]
#[test]
fn keys_without_an_address_have_no_effect() {
    let warnings = parse("advertise = \"node-a:3142\"").warnings;
    let warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("4:13: ") && warnings[0].contains("has no effect"),
        "{warnings:?}"
    );
    assert_eq!(problems_of("[cluster]\n").len(), 0);
}

#[cfg(feature = "postgres")]
#[test]
fn servers_with_one_file_differ_by_variables() {
    let text = format!(
        "{STORE}[cluster]\nlisten = \"0.0.0.0:3142\"\ntrusted_network = true\n\
         advertise = \"${{POD_IP}}:3142\"\n[server]\nname = \"${{POD_NAME}}\"\n"
    );
    let config = || Config::parse(&text, "c.toml").unwrap();
    assert_eq!(config().warnings, []);
    let problems = |environment: &dyn Fn(&str) -> Option<String>| -> Vec<String> {
        let problems = config().check_secrets(environment);
        problems.iter().map(ToString::to_string).collect()
    };
    let unset = |key: &str, variable: &str| format!("{key}: the environment variable {variable}");
    assert_eq!(
        problems(&|_| None),
        [
            unset("c.toml:8:8: server.name", "POD_NAME is not set"),
            unset("c.toml:6:13: cluster.advertise", "POD_IP is not set"),
        ]
    );
    assert_eq!(
        problems(&|name| Some(if name == "POD_IP" { "" } else { "a" }.to_owned())),
        [unset("c.toml:6:13: cluster.advertise", "POD_IP is empty")]
    );
    let set = |name: &str| Some(if name == "POD_IP" { "10.0.0.5" } else { "node-0" }.to_owned());
    assert_eq!(problems(&set), Vec::<String>::new());
    let mut filled = config();
    filled.fill_variables(set).unwrap();
    assert_eq!(filled.server.name.as_deref(), Some("node-0"));
    assert_eq!(filled.cluster.advertise.unwrap().0, "10.0.0.5:3142");
}

#[cfg(feature = "postgres")]
#[test]
fn certificates_that_cannot_be_used_are_named() {
    let files = "certificate = \"none.pem\"\nkey = \"a.key\"\nca = \"ca.pem\"";
    let config = parse(&format!("listen = \"127.0.0.1:3142\"\n{files}"));
    let check = |files: ClusterTls<'_>| Err(format!("{}: none", files.certificate.display()));
    let warning = config.check_certificate(check).unwrap();
    assert!(!warning.is_error());
    let (warning, named) =
        (warning.to_string(), "cluster.certificate: cannot be used with `key` and `ca`: ");
    assert!(warning.starts_with(&format!("c.toml:5:15: warning: {named}")), "{warning}");
    assert!(warning.contains("none.pem: "), "{warning}");
    assert_eq!(parse(files).check_certificate(check), None, "it has no effect");
}
