//! Encrypted links, and certificates that are not of the cluster's authority.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use greenroom_links::LinkTls;

use super::raw::{HELLO, Raw, hello};
use super::*;

/// Makes an authority, and a certificate of it for each server.
const CERTIFICATES: &str = "set -e
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
        -subj /CN=authority -keyout ca.key -out ca.pem
    for name in one two; do
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$name \
            -keyout $name.key -out $name.csr
        printf 'subjectAltName=DNS:%s' $name > $name.ext
        openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
            -extfile $name.ext -out $name.pem
    done";

fn authority() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut making = Command::new("sh");
    making.args(["-c", CERTIFICATES]).current_dir(folder.path()).stderr(Stdio::null());
    assert!(making.status().unwrap().success(), "openssl makes the certificates");
    folder
}

fn encrypted(name: &str, of: &Path, authority: PathBuf) -> LinkSettings {
    let (certificate, key) = (of.join(format!("{name}.pem")), of.join(format!("{name}.key")));
    LinkSettings { tls: Some(LinkTls { certificate, key, authority }), ..settings() }
}

fn server(node: i64, name: &str, folder: &Path) -> Server {
    Server::start(&encrypted(name, folder, folder.join("ca.pem")), &identity(node), echo)
}

#[tokio::test]
async fn servers_of_one_authority_connect() {
    let folder = authority();
    let (one, two) = (server(1, "one", folder.path()), server(2, "two", folder.path()));
    one.connect(two.node, two.port());
    two.connect(one.node, one.port());
    let large = vec![7; 1_000_000];
    assert!(all(one.ask(&two, large.clone())).await == [Ok(large)]);
    assert_eq!(all(two.ask(&one, "x")).await, [Ok(b"x".to_vec())]);
    two.links.close();
    eventually("a refusal", || one.links.has_ended(two.node).then_some(()));
    let beyond = LinkSettings { listen: "0.0.0.0:0".to_owned(), ..encrypted_of(folder.path()) };
    assert!(LinkListener::bind(&beyond).is_ok(), "encrypted links may be reached");
}

fn encrypted_of(folder: &Path) -> LinkSettings {
    encrypted("one", folder, folder.join("ca.pem"))
}

#[tokio::test]
async fn certificates_of_another_authority_are_refused_by_both_sides() {
    let (ours, theirs) = (authority(), authority());
    let server = server(1, "one", ours.path());
    // trusts the server, which does not trust it
    let settings = encrypted("two", theirs.path(), ours.path().join("ca.pem"));
    let unknown = Server::start(&settings, &identity(2), echo);
    unknown.list(&[(server.node, server.port())]);
    let error = unknown.fails_to_connect(server.node);
    assert!(error.contains("received fatal alert"), "{error}");
    // the other way round: the server does not trust the certificate that it is shown
    server.list(&[(unknown.node, unknown.port())]);
    let error = server.fails_to_connect(unknown.node);
    assert!(error.contains("invalid peer certificate"), "{error}");
    assert_eq!(all(server.ask(&unknown, "x")).await, [Err(LinkError::NotSent)]);
}

#[tokio::test]
async fn servers_without_encryption_are_refused() {
    let folder = authority();
    let (encrypted, plain) = (server(1, "one", folder.path()), Server::echoing(2));
    encrypted.list(&[(plain.node, plain.port())]);
    plain.list(&[(encrypted.node, encrypted.port())]);
    encrypted.fails_to_connect(plain.node);
    plain.fails_to_connect(encrypted.node);
    let mut raw = Raw::connect(&encrypted);
    raw.says(HELLO, &hello((1, 1), 2, encrypted.node));
    raw.is_ended();
    assert!(!encrypted.figures_of(plain.node).unwrap().is_connected);
    assert!(!plain.figures_of(encrypted.node).unwrap().is_connected);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let (folder, theirs) = (authority(), authority());
    let of = folder.path();
    std::fs::write(of.join("empty.pem"), "no certificate").unwrap();
    let files = |certificate: &str, key: &str, authority: &str| LinkTls {
        certificate: of.join(certificate),
        key: of.join(key),
        authority: of.join(authority),
    };
    for (files, file, problem) in [
        (files("none.pem", "one.key", "ca.pem"), "none.pem", "No such file"),
        (files("empty.pem", "one.key", "ca.pem"), "empty.pem", "has no certificate (PEM)"),
        (files("one.pem", "one.csr", "ca.pem"), "one.csr", "no items found"),
        (files("one.pem", "one.key", "empty.pem"), "empty.pem", "has no certificate (PEM)"),
        (files("one.pem", "two.key", "ca.pem"), "one.pem", "KeyMismatch"),
    ] {
        let settings = LinkSettings { tls: Some(files), ..LinkSettings::new("127.0.0.1:0") };
        let error = LinkListener::bind(&settings).unwrap_err().to_string();
        let begin = format!(
            "`certificate`, `key` and `ca` under [cluster] cannot be used: {}: ",
            of.join(file).display()
        );
        assert!(error.starts_with(&begin) && error.contains(problem), "{error}");
    }
    assert_eq!(files("one.pem", "one.key", "ca.pem").check(), Ok(()));
    let problem = files("none.pem", "one.key", "ca.pem").check().unwrap_err();
    assert!(problem.contains("none.pem: "), "{problem}");
    std::fs::copy(theirs.path().join("ca.pem"), of.join("other.pem")).unwrap();
    let problem = files("one.pem", "one.key", "other.pem").check().unwrap_err();
    assert!(problem.contains("one.pem: invalid peer certificate: "), "{problem}");
}
