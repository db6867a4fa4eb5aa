//! Encrypted connections: the certificate of the server is verified, its name included.

use std::path::PathBuf;

use greenroom_store_postgres::PostgresSettings;
use support::eventually;
use support::postgres::Server;

use super::{open, refused, settings};

/// Makes an authority and a certificate for an alternative name, in the folder of the server's data
/// and by its account, and switches TLS on.
const CERTIFICATES: &str = "set -e
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key \
        -out ca.crt
    openssl req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr
    printf 'subjectAltName=%s' NAME > server.ext
    openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 \
        -extfile server.ext -out server.crt
    chmod 600 server.key";

/// Starts TLS with a certificate for a name; returns the file of its authority.
fn encrypt(server: &Server, name: &str, folder: &tempfile::TempDir) -> PathBuf {
    let script = CERTIFICATES.replace("NAME", name).replace('\'', "''");
    server.sql("CREATE TABLE IF NOT EXISTS said (line text)");
    server.sql(&format!("COPY said FROM PROGRAM '({script}) 2>/dev/null'"));
    server.sql("ALTER SYSTEM SET ssl = on");
    server.sql("SELECT pg_reload_conf()");
    eventually("TLS", || (server.sql("SHOW ssl") == "on").then_some(()));
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, server.sql("SELECT pg_read_file('ca.crt')")).unwrap();
    file
}

fn with_authorities(url: &str, file: &std::path::Path) -> PostgresSettings {
    PostgresSettings { authorities: Some(file.to_owned()), ..settings(url, "a") }
}

#[test]
fn tls_must_be_offered_if_the_address_asks_for_it() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    refused(
        settings(&format!("{url}&sslmode=require"), "a"),
        &format!("127.0.0.1:{} does not offer TLS; switch it on there", server.port()),
    );
    open(settings(&format!("{url}&sslmode=prefer"), "a")).unwrap();
}

#[test]
fn certificates_are_verified() {
    let Some(server) = Server::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = server.fresh_url();
    let (required, preferred) = (format!("{url}&sslmode=require"), format!("{url}&sslmode=prefer"));
    let authority = encrypt(&server, "IP:127.0.0.1", &folder);
    let unknown = format!(
        "the certificate of 127.0.0.1:{} is not trusted: UnknownIssuer; the host in the address",
        server.port()
    );
    refused(settings(&required, "a"), &unknown);
    refused(settings(&preferred, "a"), &unknown);
    for url in [&required, &preferred] {
        let store = open(with_authorities(url, &authority)).unwrap();
        let encrypted =
            "SELECT DISTINCT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
            WHERE starts_with(a.application_name, 'greenroom/')";
        eventually("connections with TLS", || (server.sql(encrypted) == "t").then_some(()));
        drop(store);
    }
    open(settings(&url, "a")).expect("within this machine no TLS is asked for");
}

#[test]
fn the_name_in_the_certificate_must_be_that_of_the_address() {
    let Some(server) = Server::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = format!("{}&sslmode=verify-ca", server.fresh_url());
    let authority = encrypt(&server, "DNS:db.example", &folder);
    let expected = format!("the certificate of 127.0.0.1:{} is not trusted: ", server.port());
    let error = open(with_authorities(&url, &authority)).unwrap_err().to_string();
    assert!(error.starts_with(&expected) && error.contains("db.example"), "{error}");
}

#[test]
fn a_file_without_certificates_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, empty) = (folder.path().join("none.pem"), folder.path().join("empty.pem"));
    std::fs::write(&empty, "no certificate").unwrap();
    let url = "postgres://ann@db/shop";
    for (file, problem) in [(missing, "No such file"), (empty, "has no certificate (PEM)")] {
        let error = open(with_authorities(url, &file)).unwrap_err().to_string();
        let expected =
            format!("the certificates of `ca` under [store] cannot be used: {}: ", file.display());
        assert!(error.starts_with(&expected) && error.contains(problem), "{error}");
    }
}
