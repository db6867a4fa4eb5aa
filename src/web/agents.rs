//! Handlers of agents.

use actix_web::{HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;

use crate::api::wire::agent::TextView;
use crate::api::{ApiError, agents};
use crate::web::body::Body;
use crate::web::peer::Peer;
use crate::web::{ids, respond};

/// `GET /agents`.
pub(crate) async fn list(runtime: web::Data<Runtime>) -> HttpResponse {
    std::future::ready(respond::json(agents::list(&runtime))).await
}

/// `GET /agents/:id`.
pub(crate) async fn describe(
    request: HttpRequest,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let id = ids::agent(&request)?;
    std::future::ready(agents::describe(&runtime, &id).map(respond::json)).await
}

/// `POST /agents/:id/text`. When the client leaves, so does its generation.
pub(crate) async fn generate_text(
    request: HttpRequest,
    body: Body,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let agent = ids::agent(&request).and_then(|id| agents::find(&runtime, &id));
    let (agent, body) = body.read_for(agent).await?;
    let generating = agents::generate_text(&runtime, agent, &body);
    let generation = match Peer::of(&request) {
        Some(peer) => tokio::select! {
            biased;
            generation = generating => generation?,
            // Nobody reads this answer.
            () = peer.gone() => {
                return Err(ApiError::InvalidRequest("the client has left".to_owned()));
            }
        },
        None => generating.await?,
    };
    let mut response = respond::json(TextView::of(&generation));
    respond::insert_text(&mut response, respond::X_GENERATION_ID, &generation.id);
    Ok(response)
}
