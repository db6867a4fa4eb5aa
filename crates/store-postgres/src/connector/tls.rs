//! Encryption of connections: the certificate of the database is verified, its name included.

use std::error::Error as _;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Error;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Refusal of a file of authorities.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnusableAuthorities(String);

/// Returns what encrypts connections, with the authorities of a file or else of the machine.
pub(super) fn connector(
    authorities: Option<&Path>,
) -> Result<MakeRustlsConnect, UnusableAuthorities> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(file) => add(file, &mut roots)
            .map_err(|problem| UnusableAuthorities(format!("{}: {problem}", file.display())))?,
        // unusable certificates of the machine are skipped: those that remain decide
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| UnusableAuthorities(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Returns why a file of authorities cannot be used, if that is so. A pipe is not looked at: it can
/// be read only once.
pub fn problem_of_authorities(file: &Path) -> Option<String> {
    let is_read_once = file.metadata().is_ok_and(|it| !it.is_file() && !it.is_dir());
    if is_read_once { None } else { add(file, &mut RootCertStore::empty()).err() }
}

fn add(file: &Path, roots: &mut RootCertStore) -> Result<(), String> {
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("has no certificate (PEM)".to_owned()) } else { Ok(()) }
}

/// Returns the reason for refusing the database's certificate, if that is the error.
pub(crate) fn certificate_problem(error: &Error) -> Option<String> {
    let io = error.source()?.downcast_ref::<io::Error>()?;
    match io.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(problem) => Some(problem.to_string()),
        _ => None,
    }
}
