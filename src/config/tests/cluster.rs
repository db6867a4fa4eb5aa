//! `[cluster]`: addresses of servers, and encryption between them.

use super::problems_of;
use super::refusals::refused;
use crate::config::Config;

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
