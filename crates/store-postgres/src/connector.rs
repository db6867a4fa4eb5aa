//! Opens connections.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Purpose of a connection, which decides its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Writes batches of one lane.
    Lane,
    /// Everything else.
    Pooled,
}

impl Purpose {
    /// Settings of a session, as one batch of statements.
    ///
    /// A plan made while tables are empty is kept for the session, so plans that scan or hash
    /// whole tables are switched off. A lane's statement costs more to plan than to run.
    fn settings(self) -> &'static str {
        match self {
            Self::Lane => {
                "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
                SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
                SET statement_timeout = '10s'; SET lock_timeout = '5s';
                SET idle_in_transaction_session_timeout = '5s'"
            }
            Self::Pooled => {
                "SET enable_seqscan = off; SET jit = off; SET statement_timeout = '30s';
                SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '30s'"
            }
        }
    }
}

/// Opens connections, which the store's thread drives.
#[derive(Clone)]
pub(crate) struct Connector {
    config: Config,
    tls: MakeRustlsConnect,
    driver: Handle,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // the configuration has the password
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    pub(crate) fn new(config: Config, driver: Handle) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        // unusable certificates of the machine are skipped: those that remain decide
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { config, tls: MakeRustlsConnect::new(tls), driver })
    }

    /// Opens a connection under a name, which the database shows (`application_name`). May be
    /// awaited on any runtime. Returns the task that drives the connection, too.
    pub(crate) async fn connect(
        &self,
        name: String,
        purpose: Purpose,
    ) -> Result<(Client, JoinHandle<()>), Error> {
        let (mut config, tls) = (self.config.clone(), self.tls.clone());
        config.application_name(name);
        let connecting = self.driver.spawn(async move {
            let (client, connection) = config.connect(tls).await?;
            let driving = tokio::spawn(async move {
                if let Err(error) = connection.await {
                    log::debug!("a connection to the database ended: {error}");
                }
            });
            client.batch_execute(purpose.settings()).await?;
            Ok((client, driving))
        });
        match connecting.await {
            Ok(connected) => connected,
            // the thread has ended, or the task panicked
            Err(_) => Err(Error::__private_api_timeout()),
        }
    }
}
