//! Refusals of a program that was built without some features, by which they are named. With all of
//! them nothing here is refused.

#[cfg(test)]
mod tests {
    use greenroom::Greenroom;
    use greenroom::builder::{Http, Route, Step, Workflow, http};
    use greenroom::config::Config;
    use serde_json::json;

    /// Returns the refusals that name a feature.
    fn refusals(text: &str) -> Vec<String> {
        let problems = Config::parse(text, "c.toml").err().unwrap_or_default();
        let problems = problems.iter().map(ToString::to_string);
        problems.filter(|problem| problem.contains("built without the feature")).collect()
    }

    #[test]
    fn a_configuration_names_the_feature_that_it_needs() {
        let files = env!("CARGO_MANIFEST_DIR");
        let assets = format!("[[routes]]\npath = \"/a\"\nstatic = \"{files}/LICENSE\"\n");
        let model = "[models.m]\nprovider = \"ollama\"\nmodel = \"x\"\n";
        for (text, feature, is_built) in [
            ("[auth.jwt]\nsecret = \"secret:KEY\"\n", "jwt", cfg!(feature = "jwt")),
            ("[mcp.a]\ncommand = [\"true\"]\n", "mcp", cfg!(feature = "mcp")),
            ("[metrics]\nenabled = true\n", "metrics", cfg!(feature = "metrics")),
            (model, "providers", cfg!(feature = "providers")),
            (
                "[updates]\nregistry = \"https://a.example\"\n",
                "providers",
                cfg!(feature = "providers"),
            ),
            ("[console]\nenabled = true\n", "ui", cfg!(feature = "ui")),
            ("[docs]\nui = true\n", "ui", cfg!(feature = "ui")),
            (&assets, "ui", cfg!(feature = "ui")),
        ] {
            let found = refusals(text);
            assert_eq!(found.len(), usize::from(!is_built), "{text}: {found:?}");
            let says =
                format!("this program was built without the feature `{feature}`: it cannot ");
            assert!(found.iter().all(|refusal| refusal.contains(&says)), "{found:?}");
        }
        for text in ["[metrics]\nenabled = false\n", "[console]\nenabled = false\n"] {
            assert!(Config::parse(text, "c.toml").is_ok(), "{text}");
        }
    }

    /// Returns the reason why a server does not start; `None` if it started.
    fn refused(server: Greenroom) -> Option<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            match server.start().await {
                Ok(server) => {
                    server.stop().await.unwrap();
                    None
                }
                Err(error) => Some(error.to_string()),
            }
        })
    }

    /// Returns a server that has a free port and this store.
    fn server(url: &str) -> Greenroom {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        let text = format!("[server]\nport = 0\n[store]\nurl = \"{url}\"\n");
        std::fs::write(&file, text).unwrap();
        Greenroom::from_config(file).unwrap()
    }

    #[test]
    fn a_server_starts_with_the_store_that_it_has() {
        assert_eq!(refused(server("memory:")), None);
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("a.db").display());
        let why = refused(server(&url));
        assert_eq!(why.is_none(), cfg!(feature = "sqlite"), "{why:?}");
        assert!(why.is_none_or(|why| why.contains("without the feature `sqlite`")));
    }

    #[test]
    fn a_route_in_rust_to_files_needs_their_pages() {
        let files = Route::files("/a", concat!(env!("CARGO_MANIFEST_DIR"), "/LICENSE"));
        let why = refused(server("memory:").route(files));
        let says = "route /a: static: this program was built without the feature `ui`: it cannot \
                    serve files; remove the route, or build the program with the feature";
        assert_eq!(why.as_deref(), (!cfg!(feature = "ui")).then_some(says));
    }

    #[test]
    fn a_step_that_calls_another_server_needs_the_client() {
        let call = Step::then("ask", http(Http::get("http://127.0.0.1:1/{{ input.a }}")));
        let workflow = Workflow::new("w").input_schema(json!({ "type": "object" })).step(call);
        let why = refused(server("memory:").workflow(workflow));
        assert_eq!(why.is_none(), cfg!(feature = "providers"), "{why:?}");
        let says = "steps.ask.http: this program was built without the feature `providers`: it \
                    cannot make HTTP calls";
        assert!(why.is_none_or(|why| why.contains(says)));
    }
}
