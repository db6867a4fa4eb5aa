//! Encryption of links: each side shows a certificate of the authority.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    ClientConfig, ConnectionCommon, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::connection::Socket;
use crate::handshake::{Binding, HandshakeError};
use crate::settings::LinkTls;

/// Name that a client must give. It is not sent, and not compared with anything.
const ANY_NAME: &str = "greenroom";

/// Both sides of encryption.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
    acceptor: TlsAcceptor,
}

impl Tls {
    /// Reads the files; the error names the one that cannot be used.
    pub(crate) fn read(files: &LinkTls) -> Result<Self, String> {
        let chain = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .map_err(|error| problem(&files.key, &error))?;
        let roots = roots(&files.authority)?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let unusable = |error: Error| problem(&files.certificate, &error);

        let checks =
            Arc::new(OfAuthority { roots: Arc::clone(&roots), provider: provider.clone() });
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(checks)
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(unusable)?;
        client.enable_sni = false;
        client.resumption = Resumption::disabled();

        let checks = WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
            .build()
            .map_err(|error| problem(&files.authority, &error))?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(checks)
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        server.send_tls13_tickets = 0;
        Ok(Self {
            connector: TlsConnector::from(Arc::new(client)),
            acceptor: TlsAcceptor::from(Arc::new(server)),
        })
    }

    /// Checks the files as [`Self::read`] does, and that the authority has signed the certificate.
    pub(crate) fn check(files: &LinkTls) -> Result<(), String> {
        Self::read(files)?;
        let chain = certificates(&files.certificate)?;
        let (certificate, intermediates) = chain.split_first().expect("it has been read");
        let provider = Arc::new(aws_lc_rs::default_provider());
        let checks = OfAuthority { roots: roots(&files.authority)?, provider };
        checks
            .verify(certificate, intermediates, UnixTime::now())
            .map_err(|error| problem(&files.certificate, &error))
    }

    /// Encrypts a connection that this server has dialled.
    pub(crate) async fn connect(
        &self,
        socket: TcpStream,
    ) -> Result<(Box<dyn Socket>, Binding), HandshakeError> {
        let name = ServerName::try_from(ANY_NAME).expect("it is a valid name");
        let stream = self.connector.connect(name, socket).await?;
        let binding = binding(stream.get_ref().1)?;
        Ok((Box::new(stream), binding))
    }

    /// Encrypts a connection that this server has accepted.
    pub(crate) async fn accept(
        &self,
        socket: TcpStream,
    ) -> Result<(Box<dyn Socket>, Binding), HandshakeError> {
        let stream = self.acceptor.accept(socket).await?;
        let binding = binding(stream.get_ref().1)?;
        Ok((Box::new(stream), binding))
    }
}

fn problem(file: &Path, error: &dyn Display) -> String {
    format!("{}: {error}", file.display())
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let certificates: Vec<_> = read.map_err(|error| problem(file, &error))?;
    if certificates.is_empty() {
        return Err(problem(file, &"has no certificate (PEM)"));
    }
    Ok(certificates)
}

fn roots(authority: &Path) -> Result<Arc<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots.add(certificate).map_err(|error| problem(authority, &error))?;
    }
    Ok(Arc::new(roots))
}

/// Returns what both ends of one encrypted connection know, and no one between two.
fn binding<Data>(connection: &ConnectionCommon<Data>) -> Result<Binding, HandshakeError> {
    let exported = connection.export_keying_material([0; 32], b"EXPORTER-greenroom-links", None);
    exported.map(Some).map_err(|_| HandshakeError::Malformed)
}

/// Checks that a certificate is one of the authority. Names are not compared: addresses of servers
/// change, and the handshake shows that the other end knows the secret.
#[derive(Debug)]
struct OfAuthority {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl OfAuthority {
    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(certificate)?,
            &self.roots,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )
    }
}

impl ServerCertVerifier for OfAuthority {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(certificate, intermediates, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
