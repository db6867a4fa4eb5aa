//! Changes of the list of tools, as servers of newer versions send them.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::{Peer, RoleClient, ServiceError};
use tokio::sync::Notify;
use tokio::time::sleep;

/// Pause before a lost subscription to changes is made again.
const LISTEN_PAUSE: Duration = Duration::from_secs(30);

/// Subscribes to changes of the list at servers that need it. Never returns.
pub(crate) async fn listen(peer: &Peer<RoleClient>, changed: Arc<Notify>) -> ! {
    let info = peer.peer_info();
    let is_wanted = info.is_some_and(|info| {
        let tools = info.capabilities.tools.as_ref();
        let tells = tools.is_some_and(|tools| tools.list_changed == Some(true));
        tells && info.protocol_version >= ProtocolVersion::V_2026_07_28
    });
    if !is_wanted {
        match pending::<Infallible>().await {}
    }
    loop {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(filter).await {
            Ok(mut subscription) => {
                while let Ok(Some(_)) = subscription.next().await {
                    changed.notify_one();
                }
            }
            Err(ServiceError::McpError(_)) => break,
            Err(_) => {}
        }
        sleep(LISTEN_PAUSE).await;
        // a change may have been missed
        changed.notify_one();
    }
    match pending::<Infallible>().await {}
}
