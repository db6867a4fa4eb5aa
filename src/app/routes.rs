//! Assembly of routes: built-in ones, those of the configuration, those of Rust code.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

use crate::api::catalogue::{
    Access, Answer, Catalogue, Class, Likeness, Method, ROUTES, Route, RouteName, Tag,
};
use crate::api::workflows::StartBody;
use crate::config::routes::path_problem;
use crate::config::{
    AgentAnswer, Config, ConfigProblem, McpFace, RouteConfig, RouteTarget, WorkflowAnswer,
    WorkflowBody,
};
use crate::web::custom::handler::CustomHandler;
use crate::web::custom::{Routes, files, shortcuts};

/// All routes, and the handlers of the added ones by index.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) catalogue: Catalogue,
    pub(crate) custom: Vec<CustomHandler>,
}

/// Assembles all routes; `registered` are those of Rust code. Fails if a path is invalid or
/// ambiguous, or if a route would expose the store or keys.
pub(crate) fn assemble(
    config: &Config,
    registered: &Routes,
) -> Result<Assembled, Vec<ConfigProblem>> {
    let all = Catalogue::default();
    let catalogue = if config.docs.ui_is_on(config.environment) { all } else { all.without_ui() };
    let has_console = config.console.is_on(config.environment);
    let catalogue = if has_console { catalogue } else { catalogue.without_console() };
    let is_counted = config.metrics.enabled;
    let catalogue = if is_counted { catalogue } else { catalogue.without_metrics() };
    let has_openai = config.faces.openai.is_some();
    let catalogue = if has_openai { catalogue } else { catalogue.without_openai() };
    let has_name = |face: &McpFace| face.name.is_some();
    let mcp = &config.faces.mcp;
    let catalogue = catalogue.with_mcp(!mcp.iter().all(has_name), mcp.iter().any(has_name));
    let mut assembled = Assembled { catalogue, custom: Vec::new() };
    let mut problems = Vec::new();
    for route in &config.routes {
        problems.extend(exposed(config, &route.target).map(|what| route.refuse(what)));
        let (row, handler) = configured(route, assembled.custom.len());
        if let Err(taken) = assembled.add(row, handler) {
            problems.push(route.refuse(taken));
        }
    }
    for route in registered.iter() {
        let refuse = |message: String| ConfigProblem::of_file("routes", message);
        let row = route.row(assembled.custom.len());
        if let Some(problem) = path_problem(route.path()) {
            problems.push(refuse(format!("{route}: the path {problem}")));
        } else if let Err(taken) = assembled.add(row, route.handler()) {
            problems.push(refuse(taken));
        }
    }
    if problems.is_empty() { Ok(assembled) } else { Err(problems) }
}

impl Assembled {
    fn add(&mut self, row: Route, handler: CustomHandler) -> Result<(), String> {
        self.catalogue.add(row)?;
        self.custom.push(handler);
        Ok(())
    }
}

/// Returns the reason if a route would expose the store or the environment file.
fn exposed(config: &Config, target: &RouteTarget) -> Option<&'static str> {
    if config.store.url.file().is_some_and(|store| shows(target, store)) {
        return Some("would expose the store and all data in it");
    }
    shows(target, &config.system.env_file)
        .then_some("would expose the environment file and the keys in it")
}

/// Returns true if a route serves a file, which need not exist yet.
fn shows(target: &RouteTarget, file: &Path) -> bool {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let place = folder.unwrap_or_else(|| Path::new(".")).canonicalize();
    let (Ok(place), Some(name)) = (place, file.file_name()) else { return false };
    let file = place.join(name);
    match target {
        RouteTarget::File(path) => path.canonicalize().is_ok_and(|path| path == file),
        RouteTarget::Folder(root) => root.canonicalize().is_ok_and(|root| {
            let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
            file.strip_prefix(root).is_ok_and(|rest| !rest.iter().any(is_hidden))
        }),
        RouteTarget::Workflow { .. } | RouteTarget::Agent { .. } => false,
    }
}

/// Builds the row and the handler of a configured route.
fn configured(route: &RouteConfig, index: usize) -> (Route, CustomHandler) {
    let (like, handler) = match &route.target {
        RouteTarget::Workflow { id, answer, body } => starting(id, *answer, *body),
        RouteTarget::Agent { id, answer } => asking(id, *answer),
        RouteTarget::File(path) => (None, files::file(path.clone())),
        RouteTarget::Folder(path) => {
            let segments = route.path.matches('/').count() - 1;
            (None, files::folder(path.clone(), segments))
        }
    };
    let model = like.as_ref().and_then(|like| {
        let row = ROUTES.iter().find(|row| row.name == like.name)?;
        Some((row.answer, row.class, format!("{} ({})", row.summary, like.id)))
    });
    let (answer, class, summary) =
        model.unwrap_or_else(|| (Answer::Text, Class::Read, "Show a file".to_owned()));
    let row = Route {
        method: if like.is_some() { Method::Post } else { Method::Get },
        path: Cow::Owned(route.path.clone()),
        name: RouteName::Custom(index),
        answer,
        tag: Tag::Custom,
        class,
        access: Access::Protected,
        is_owned: false,
        summary: Cow::Owned(route.summary.clone().unwrap_or(summary)),
        like,
    };
    (row, handler)
}

fn starting(
    workflow: &str,
    answer: WorkflowAnswer,
    body: WorkflowBody,
) -> (Option<Likeness>, CustomHandler) {
    let body = match body {
        WorkflowBody::Request => StartBody::Request,
        WorkflowBody::Input => StartBody::Input,
    };
    let (name, handler) = match answer {
        WorkflowAnswer::Result => (RouteName::ExecuteWorkflow, shortcuts::execute(workflow, body)),
        WorkflowAnswer::Stream => (RouteName::StreamWorkflow, shortcuts::stream(workflow, body)),
    };
    let takes_input_alone = body == StartBody::Input;
    (Some(Likeness { name, id: workflow.into(), takes_input_alone }), handler)
}

fn asking(agent: &str, answer: AgentAnswer) -> (Option<Likeness>, CustomHandler) {
    let (name, handler) = match answer {
        AgentAnswer::Text => (RouteName::GenerateText, shortcuts::generate_text(agent)),
        AgentAnswer::Stream => (RouteName::StreamText, shortcuts::stream_text(agent)),
        AgentAnswer::Chat => (RouteName::Chat, shortcuts::chat(agent)),
        AgentAnswer::Object => (RouteName::GenerateObject, shortcuts::generate_object(agent)),
        AgentAnswer::StreamObject => (RouteName::StreamObject, shortcuts::stream_object(agent)),
    };
    (Some(Likeness { name, id: agent.into(), takes_input_alone: false }), handler)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::api::access::{AccessPolicy, AccessRule, DefaultAccess, Pattern};

    #[test]
    fn a_public_route_is_public_under_every_default_policy() {
        let mut routes = Routes::default();
        routes.get("/open", || async { "here" }).public();
        routes.post("/open", || async { "here" });
        routes.get("/ruled", || async { "here" }).public();
        let assembled = assemble(&Config::default(), &routes).unwrap();
        let rule = |route: &str| AccessRule {
            route: Pattern::parse(route).unwrap(),
            roles: Arc::from(["admin".to_owned()]),
        };
        for default in [DefaultAccess::Spec, DefaultAccess::Private] {
            let policy = AccessPolicy {
                default,
                public: routes.public_routes().map(|it| Pattern::parse(&it).unwrap()).collect(),
                rules: vec![rule("GET /ruled")],
                owner_roles: None,
            };
            let closed = |path: &str| {
                let rows = assembled.catalogue.at(path);
                rows.map(|row| policy.gate(row).needs_token(path)).collect::<Vec<_>>()
            };
            assert_eq!((closed("/open"), closed("/ruled")), (vec![false, true], vec![true]));
        }
    }

    #[test]
    fn no_route_exposes_the_store_or_the_environment_file() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().display().to_string();
        std::fs::create_dir_all(directory.path().join("site/.data")).unwrap();
        std::fs::write(directory.path().join("site/keys"), "").unwrap();
        let problems_of = |place: &str, store: &str, env_file: &str| {
            let path = if place.contains('/') { "/a" } else { "/a/*" };
            let text = format!(
                "[store]\nurl = \"sqlite://{home}/{store}\"\n\
                 [system]\nenv_file = \"{home}/{env_file}\"\n\
                 [[routes]]\npath = \"{path}\"\nstatic = \"{home}/{place}\"\n"
            );
            let config = Config::parse(&text, "c.toml").unwrap();
            let problems = assemble(&config, &Routes::default()).err().unwrap_or_default();
            problems.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let at = "c.toml:6:8: routes[0].path: would expose the";
        let store = format!("{at} store and all data in it");
        let env_file = format!("{at} environment file and the keys in it");
        for (place, store, env_file, expected) in [
            ("site", "site/new.db", ".env", &store),
            ("site/keys", "site/keys", ".env", &store),
            ("site", "a.db", "site/keys", &env_file),
            ("site/keys", "a.db", "site/keys", &env_file),
        ] {
            assert_eq!(problems_of(place, store, env_file), [expected.as_str()], "{place} {store}");
        }
        for (store, env_file) in [("site/.data/a.db", "site/.env"), ("a.db", "keys")] {
            assert_eq!(problems_of("site", store, env_file), [""; 0]);
        }
    }

    #[test]
    fn a_closed_face_leaves_its_paths_to_others() {
        let mut routes = Routes::default();
        routes.post("/v1/chat/completions", || async { "mine" });
        routes.get("/v1/:anything", || async { "mine" });
        assert!(assemble(&Config::default(), &routes).is_ok());
        let open = Config::parse("[faces.openai]\n", "c.toml").unwrap();
        let problems = assemble(&open, &routes).unwrap_err();
        let text = "POST /v1/chat/completions would be answered by POST /v1/chat/completions";
        assert!(problems[0].to_string().contains(text), "{problems:?}");
        let closed = assemble(&Config::default(), &Routes::default()).unwrap();
        assert!(closed.catalogue.of_path("/v1/models").is_none());
    }

    #[test]
    fn a_configured_route_takes_its_row_from_the_built_in_route() {
        let text = "[[routes]]\npath = \"/a\"\nworkflow = \"w\"\nanswer = \"stream\"\n\
                    [[routes]]\npath = \"/b\"\nagent = \"a\"\nsummary = \"Asks\"\n\
                    [[routes]]\npath = \"/c\"\nstatic = \"Cargo.toml\"\n\
                    [models.m]\nprovider = \"rehearsal\"\n[agents.a]\nmodel = \"m\"\n\
                    [workflows.w]\nsteps = [{ id = \"a\", map = 1 }]\n";
        let config = Config::parse(text, "c.toml").unwrap();
        let assembled = assemble(&config, &Routes::default()).unwrap();
        let rows = assembled.catalogue.rows().iter();
        let rows: Vec<_> = rows.filter(|row| row.tag == Tag::Custom).collect();
        let shown = |row: &Route| (row.to_string(), row.answer, row.class, row.summary.to_string());
        let expected = [
            ("POST /a", Answer::Events, Class::Run, "Run a workflow and stream its events (w)"),
            ("POST /b", Answer::Json, Class::Run, "Asks"),
            ("GET /c", Answer::Text, Class::Read, "Show a file"),
        ];
        let expected = expected.map(|(route, answer, class, summary)| {
            (route.to_owned(), answer, class, summary.to_owned())
        });
        assert_eq!(rows.iter().copied().map(shown).collect::<Vec<_>>(), expected);
        assert_eq!((assembled.custom.len(), rows[0].access), (3, Access::Protected));
    }
}
