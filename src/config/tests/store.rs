//! `[store]`: addresses of databases, and their passwords.

use super::problems_of;
use super::refusals::refused;
#[cfg(feature = "postgres")]
use crate::config::{Config, PasswordSource, StoreUrl};

/// An authority, whose key was thrown away.
#[cfg(feature = "postgres")]
const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBfzCCASWgAwIBAgIUGyHkYllgADxXVp1UmrEHncstt58wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJYXV0aG9yaXR5MCAXDTI2MTEyMzEyMTY0MVoYDzIxMjYxMDMw
MTIxNjQxWjAUMRIwEAYDVQQDDAlhdXRob3JpdHkwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQ5ebTXADIZAVym7sKWxr0vLHGEuT0rgsd2P6pjOl9nV1O1wWRtqgZa
DBfCDty2MEafh8SHsc1vVjNeim3dpbTzo1MwUTAdBgNVHQ4EFgQUGD/zG6n1aCAi
YZ0QFfgQjq0srtUwHwYDVR0jBBgwFoAUGD/zG6n1aCAiYZ0QFfgQjq0srtUwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiBI+ITa+uJRniHdtTDP8Rxk
0kHGc9I8UYqGijdnobvYVwIhAOsTGxW+19v3nxpz4MSw5nva8+CxSOH62hR+SZDq
3HmX
-----END CERTIFICATE-----
";

#[test]
fn replicas_need_a_database() {
    let refusal = "store.durability: \"replicated\" needs a store in PostgreSQL; use \"full\" for a \
                   file";
    refused(&[
        ("[store]\ndurability = \"replicated\"\n", &[&format!("c.toml:2:14: {refusal}")]),
        (
            "[store]\nurl = \"memory:\"\ndurability = \"replicated\"\n",
            &[&format!("c.toml:3:14: {refusal}")],
        ),
    ]);
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_build_without_postgresql_says_so() {
    refused(&[(
        "[store]\nurl = \"postgres://ann@db/shop\"\n",
        &["c.toml:2:7: store.url: this build has no PostgreSQL; build with the feature `postgres`"],
    )]);
}

#[cfg(feature = "postgres")]
#[test]
fn mistakes_in_an_address_have_their_column_and_repeat_nothing() {
    let url = |url: &str, problem: &str| {
        (format!("[store]\nurl = {url}\n"), format!("c.toml:2:{problem}"))
    };
    let user = "store.url: must name a user before the host, as in `user@host`";
    for (text, expected) in [
        url("\"postgres:db\"", "7: store.url: must begin with `postgres://`"),
        url("\"postgres://db/shop\"", &format!("19: {user}")),
        url("'postgresql://db/shop'", &format!("21: {user}")),
        url("\"postgres://é@db:x/shop\"", "24: store.url: must be a port from 1 to 65535"),
        url(
            "\"postgres://ann:hid@den@db/shop\"",
            "19: store.url: `/`, `?` and `@` in a user name or a password must be written as \
             `%2F`, `%3F` and `%40`",
        ),
        url("\"postgres://ann:hidden@db\"", "32: store.url: must name a database after the host"),
        url(
            "\"postgres://ann:hidden@db/shop?sslmode=verify\"",
            "46: store.url: must be disable, prefer, require, verify-ca or verify-full",
        ),
        // with escapes the places in the file and in the text differ
        url("\"postgres://ann@db\\u003a0/shop\"", "7: store.url: must be a port from 1 to 65535"),
        url(
            "\"postgres://ann:${PASSWORD}@db/shop\"",
            "7: store.url: cannot name a secret; leave the password out, and set `password = \
             \"secret:NAME\"` below it",
        ),
    ] {
        let problems = problems_of(&text);
        assert_eq!(problems, [expected], "for:\n{text}");
        assert!(!problems[0].contains("hid"), "{problems:?}");
    }
}

#[cfg(feature = "postgres")]
#[test]
fn an_address_is_read_with_its_settings() {
    let text = "[store]\nurl = \"postgres://ann@db1,db2:7/shop\"\ndurability = \"replicated\"\n\
                password = \"secret:DB_PASSWORD\"\nca = \"tls/ca.pem\"\nwriters = 4\n\
                connections = 20\npatience = \"3s\"\nstate_dir = \"/var/lib/greenroom\"\n";
    let folder = tempfile::tempdir().unwrap();
    let (file, ca) = (folder.path().join("c.toml"), folder.path().join("tls/ca.pem"));
    std::fs::create_dir(folder.path().join("tls")).unwrap();
    std::fs::write(&ca, CERTIFICATE).unwrap();
    let config = Config::parse(text, file.to_str().unwrap()).unwrap();
    assert_eq!(config.warnings, []);
    let store = &config.store;
    assert_eq!(store.url.to_string(), "postgres://ann@db1:5432,db2:7/shop");
    assert_eq!(store.ca, Some(ca));
    assert_eq!((store.writers, store.connections, store.patience.as_secs()), (4, 20, 3));
    assert_eq!(store.sockets(), 27);
    let missing = config.check_secrets(|_| None);
    assert_eq!(
        missing.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [format!(
            "{}:4:12: store.password: the environment variable DB_PASSWORD is not set",
            file.display()
        )]
    );
    assert_eq!(config.check_secrets(|_| Some("pw".to_owned())), []);
}

#[cfg(feature = "postgres")]
#[test]
fn authorities_that_cannot_be_used_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(folder.path().join("empty.pem"), "no certificate").unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(made.unwrap().success());
    let refusal = |url: &str, ca: &str| {
        let text = format!("[store]\nurl = \"{url}\"\nca = \"{ca}\"\n");
        let problems = Config::parse(&text, file.to_str().unwrap()).err().unwrap_or_default();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (ca, problem) in [
        ("none.pem", "No such file or directory"),
        ("empty.pem", "has no certificate (PEM)"),
        ("folder", "Is a directory"),
    ] {
        let [refused] = &refusal("postgres://ann@db/shop", ca)[..] else { panic!("{ca}") };
        let at = format!("{}:3:6: store.ca: cannot be used: ", file.display());
        let path = folder.path().join(ca);
        assert!(refused.starts_with(&format!("{at}{}: ", path.display())), "{refused}");
        assert!(refused.contains(problem), "{refused}");
    }
    assert!(refusal("postgres://ann@db/shop", "pipe").is_empty(), "it can be read only once");
    assert!(refusal("memory:", "none.pem").is_empty(), "it is not read");
}

#[cfg(feature = "postgres")]
#[test]
fn one_of_two_passwords_is_not_used() {
    let text = "[store]\nurl = \"postgres://ann:hidden@db/shop\"\npassword = \"secret:DB\"\n";
    let warnings = Config::parse(text, "c.toml").unwrap().warnings;
    let [_, warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert_eq!(
        warning.to_string(),
        "c.toml:3:12: warning: store.password: precedes the password in `url`, which is not used; \
         leave that one out"
    );
}

#[test]
fn a_password_in_the_file_is_refused_without_being_repeated() {
    let refusal = "c.toml:2:12: store.password: must name an environment variable, e.g. \
                   \"secret:PGPASSWORD\"";
    for value in ["\"hidden\"", "\"a secret:B\"", "7"] {
        assert_eq!(problems_of(&format!("[store]\npassword = {value}\n")), [refusal], "{value}");
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_password_in_the_address_is_used_with_a_warning() {
    let text = "[store]\nurl = \"postgres://ann:hid%64en@db/shop\"\n";
    let config = Config::parse(text, "c.toml").unwrap();
    assert_eq!(
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["c.toml:2:7: warning: store.url: has a password, which everyone who can read this file \
          knows; leave it out, and set `password = \"secret:NAME\"` below it, or the environment \
          variable PGPASSWORD"]
    );
    assert!(!format!("{:?}{}", config.store, config.store.url).contains("hidden"));
    let StoreUrl::Postgres(address) = &config.store.url else { panic!("an address") };
    assert!(address.password.is_some());
}

#[cfg(feature = "postgres")]
#[test]
fn passwords_come_from_the_named_variable_the_address_or_pgpassword() {
    let environment = |name: &str| match name {
        "DB" => Some("from-db".to_owned()),
        "PGPASSWORD" => Some("from-pg".to_owned()),
        _ => None,
    };
    let source = || Some(PasswordSource::variable("DB"));
    for (credentials, password, expected, secrets) in [
        ("ann", None, Some("from-pg"), &["from-pg"][..]),
        ("ann", source(), Some("from-db"), &["from-db"]),
        ("ann:from-url", None, None, &["from-url"]),
        ("ann:from-url", source(), Some("from-db"), &["from-url", "from-db"]),
    ] {
        let text = format!("[store]\nurl = \"postgres://{credentials}@db/shop\"\n");
        let mut config = Config::parse(&text, "c.toml").unwrap();
        config.store.password = password;
        assert_eq!(config.store.password(environment).as_deref(), expected, "{credentials}");
        assert_eq!(config.store.secrets(environment), secrets, "{credentials}");
    }
    let of_a_file = Config::default();
    assert_eq!(of_a_file.store.secrets(environment), Vec::<String>::new());
}
