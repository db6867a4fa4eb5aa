//! Secrets reach their destination and appear nowhere else.

use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::site::{CONFIG, Site};
use super::sockets::Socket;
use super::upstream::{FORMATS, ROUTES, begins, event, model, says};
use crate::program::Programs;
use support::client::Wire;
use support::eventually;
use support::provider::{Asked, Deed, Provider, piece, stream_head, whole};
use support::server::{Home, Server};
use support::store::Store;

/// Values in the environment: the key of the models, a header of a tool, and an unused one.
const SECRETS: [(&str, &str); 3] = [
    ("TEST_MODEL_KEY", "canary-key-4f1c9a77"),
    ("TEST_TOOL_TOKEN", "canary-tool-81be02d3"),
    ("TEST_OTHER", "canary-other-5509ee1a"),
];

/// All answers so far, heads included.
#[derive(Default)]
struct Seen(Vec<String>);

impl Seen {
    fn ask(&mut self, site: &Site, method: &str, path: &str, body: Option<&Value>) -> u16 {
        let mut wire = Wire::open(site.address).unwrap();
        let body = body.map(Value::to_string);
        wire.send(method, path, &[], body.as_deref().map(str::as_bytes)).unwrap();
        let reply = wire.reply().unwrap();
        self.0.push(format!("{method} {path} {:?}\n{}", reply.headers, reply.text()));
        reply.status
    }
}

/// Scripts of a server that echoes its request, once for each route.
fn echoes(format: &str) -> Vec<Vec<Deed>> {
    let (_, key) = SECRETS[0];
    let said = format!("no: {key} (Authorization: Bearer {key}, https://x.example/?key={key})");
    let refusal = json!({ "error": { "message": said, "type": key, "param": { "key": key } } });
    let headers = [("x-echo", key), ("retry-after", key), ("location", key)];
    let rows = vec![
        whole(401, &headers, &refusal.to_string()),
        whole(500, &headers, &format!("plain {key}")),
        whole(404, &headers, &format!("<html>{key}</html>")),
        whole(302, &headers, key),
        vec![stream_head(), event(&refusal)],
        vec![stream_head(), piece(format!("data: {key}\n\n").as_bytes())],
        vec![stream_head(), piece(b"data: "), Deed::Send(key.as_bytes().to_vec())],
        [begins(format, "well"), vec![event(&refusal)]].concat(),
        [begins(format, "well"), vec![piece(format!("data: {{{key}\n\n").as_bytes())]].concat(),
        vec![Deed::Send(format!("{key}\r\n\r\n").into_bytes())],
    ];
    rows.into_iter().flat_map(|row| vec![row; ROUTES.len()]).collect()
}

/// Answers of the server behind the tool.
fn tool_echoes() -> Vec<Vec<Deed>> {
    let (_, token) = SECRETS[1];
    let headers = [("x-echo", token), ("content-type", "application/json")];
    let body = json!({ "you": format!("Bearer {token}"), token: [token] }).to_string();
    vec![
        whole(200, &headers, &body),
        whole(200, &[], token),
        whole(200, &headers, &format!("{{{token}")),
        whole(500, &headers, &body),
        whole(403, &[("location", token)], token),
        whole(302, &[("location", &*format!("http://{token}.example/"))], token),
        vec![Deed::Send(format!("{token}\r\n\r\n").into_bytes())],
    ]
}

fn config(models: &[Provider], tools: &Provider) -> String {
    let agent = |(format, server): (&&str, &Provider)| {
        let model = model(format, format, server);
        format!(
            "{model}api_key = \"secret:TEST_MODEL_KEY\"\n\
             [agents.{format}]\nmodel = \"{format}\"\ntools = [\"lookup\"]\n\
             [workflows.by-{format}]\nsteps = [{{ id = \"ask\", type = \"andAgent\", \
             agent = \"{format}\", prompt = \"hi\" }}]\n"
        )
    };
    let lookup = format!(
        "[tools.lookup]\nkind = \"http\"\nmethod = \"POST\"\ndescription = \"Looks up\"\n\
         url = \"{}lookup\"\nparameters = {{ type = \"object\" }}\n\
         headers = {{ authorization = \"Bearer secret:TEST_TOOL_TOKEN\" }}\n",
        tools.base_url()
    );
    let rehearsal = "[models.caller]\nprovider = \"rehearsal\"\n\
        [[models.caller.rules]]\nwhen = \"not tool_results\"\ntool_call = { name = \"lookup\" }\n\
        [[models.caller.rules]]\nreply = \"{{ tool_results[0] }}\"\n\
        [agents.caller]\nmodel = \"caller\"\ntools = [\"lookup\"]\n";
    let agents: String = FORMATS.iter().zip(models).map(agent).collect();
    format!("{agents}{lookup}{rehearsal}{CONFIG}")
}

fn start(home: Home) -> Site {
    let mut command = home.greenroom(&["--log", "debug"]);
    command.envs(SECRETS);
    let server = Server::start(command);
    Site { home, server }
}

fn header<'a>(asked: &'a Asked, name: &str) -> Option<&'a str> {
    asked.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// Calls every agent on every route, then every route that describes the runs.
fn ask_everything(site: &Site, seen: &mut Seen, rounds: usize, tool_rounds: usize) {
    let body = |route: &str| {
        json!({ "input": "hi", "schema": { "type": "object" },
        "options": { "userId": "u", "conversationId": route } })
    };
    for format in FORMATS {
        for _ in 0..rounds {
            for route in ROUTES {
                seen.ask(site, "POST", &format!("/agents/{format}/{route}"), Some(&body(route)));
            }
        }
        let input = json!({ "input": {} });
        // the provider's script is used up
        let status =
            seen.ask(site, "POST", &format!("/workflows/by-{format}/execute"), Some(&input));
        assert_eq!(status, 500);
        seen.ask(site, "POST", &format!("/workflows/by-{format}/stream"), Some(&input));
    }
    for _ in 0..tool_rounds {
        for route in ROUTES {
            seen.ask(site, "POST", &format!("/agents/caller/{route}"), Some(&body(route)));
        }
        seen.ask(site, "POST", "/tools/lookup/execute", Some(&json!({ "input": {} })));
    }
    for path in ["/agents", "/tools", "/workflows", "/workflows/executions", "/doc", "/", "/nope"] {
        seen.ask(site, "GET", path, None);
    }
    for agent in FORMATS.iter().chain(&["caller"]) {
        seen.ask(site, "GET", &format!("/agents/{agent}"), None);
        seen.ask(site, "GET", &format!("/agents/{agent}/history?limit=100"), None);
        for route in ROUTES {
            let path =
                format!("/api/memory/conversations/{route}/messages?agentId={agent}&userId=u");
            seen.ask(site, "GET", &path, None);
        }
        let path = format!("/api/memory/search?q=well&agentId={agent}&userId=u");
        seen.ask(site, "GET", &path, None);
    }
    let list = site.get("/workflows/executions").data();
    for execution in list["executions"].as_array().unwrap() {
        let (workflow, id) = (&execution["workflowId"], &execution["executionId"]);
        let (workflow, id) = (workflow.as_str().unwrap(), id.as_str().unwrap());
        let path = format!("/workflows/{workflow}/executions/{id}");
        seen.ask(site, "GET", &format!("{path}/state"), None);
        seen.ask(site, "GET", &format!("{path}/stream"), None);
    }
}

/// Reads every frame of an observer until the server exits.
fn observe(site: &Site) -> JoinHandle<String> {
    let mut socket = Socket::open(site, "/ws/observability");
    std::thread::spawn(move || {
        let mut told = String::new();
        while let Ok(message) = socket.0.read() {
            told.push_str(message.to_text().unwrap_or_default());
        }
        told
    })
}

#[test]
fn planted_secrets_appear_nowhere() {
    let models = FORMATS.map(|format| Provider::start(echoes(format)));
    let rounds = echoes("openai").len() / ROUTES.len();
    let tool_scripts = tool_echoes();
    let tool_rounds = tool_scripts.len();
    let scripts = tool_scripts.into_iter().flat_map(|row| vec![row; ROUTES.len() + 1]);
    let tools = Provider::start(scripts);
    let mut site = start(Home::on(Store::Sqlite, &config(&models, &tools)));
    let observed = observe(&site);
    let mut seen = Seen::default();
    ask_everything(&site, &mut seen, rounds, tool_rounds);

    // the secrets reached their destinations
    let headers = ["authorization", "x-api-key", "x-goog-api-key"];
    for (server, name) in models.iter().zip(headers) {
        let asked = server.asked();
        assert!(asked.len() > rounds * ROUTES.len(), "{}", asked.len());
        assert!(asked.iter().all(|asked| header(asked, name).unwrap().ends_with(SECRETS[0].1)));
        assert!(
            asked.iter().all(|asked| !format!("{} {}", asked.path, asked.body).contains("canary"))
        );
    }
    let asked = tools.asked();
    assert_eq!(asked.len(), tool_rounds * (ROUTES.len() + 1));
    let token = format!("Bearer {}", SECRETS[1].1);
    assert!(asked.iter().all(|asked| header(asked, "authorization") == Some(&*token)));

    let wal = std::fs::read(site.home.path("store.db-wal")).unwrap();
    assert!(wal.len() > 100_000, "the log of the store has been written: {}", wal.len());
    let mut places = vec![("store.db-wal while it runs".to_owned(), wal)];
    places.extend(seen.0.into_iter().map(|text| ("an answer".to_owned(), text.into_bytes())));
    site.server.signal("TERM");
    assert!(site.server.ended().success());
    let observed = observed.join().unwrap();
    assert!(observed.contains("by-openai") && observed.contains("span:end"), "{observed}");
    places.push(("what an observer saw".to_owned(), observed.into_bytes()));
    let log = site.server.log.lock().unwrap().iter().collect::<Vec<_>>().join("\n");
    assert!(log.contains("DEBUG") && log.contains("openai"), "{log}");
    places.push(("the log".to_owned(), log.into_bytes()));
    for file in std::fs::read_dir(site.home.path("")).unwrap() {
        let path = file.unwrap().path();
        places.push((path.display().to_string(), std::fs::read(&path).unwrap()));
    }
    let texts = places.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    assert!(texts > 200_000, "there is something to search: {texts}");
    for (place, bytes) in &places {
        let found = bytes.windows(6).position(|part| part == b"canary");
        let found = found.map(|at| {
            String::from_utf8_lossy(&bytes[at.saturating_sub(200)..(at + 60).min(bytes.len())])
        });
        assert!(found.is_none(), "{place}: {found:?}");
    }
}

#[test]
fn check_names_variables_and_not_their_values() {
    let server = Provider::start([says("hi")]);
    let rows = [("secret:TEST_OTHER canary", "api_key"), ("canary-written-out", "api_key")];
    for (written, key) in rows {
        let config = format!("{}{key} = \"{written}\"\n", model("m", "openai", &server));
        let home = Home::new(&format!("{config}{CONFIG}"));
        let mut command = home.greenroom(&["check"]);
        command.envs(SECRETS);
        let output = home.run(command);
        assert_eq!(output.status.code(), Some(1));
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("must name an environment variable"), "{said}");
        assert!(!said.contains("canary"), "{said}");
    }
    eventually("no request was sent", || server.asked().is_empty().then_some(()));
}
