//! Profiles: servers and tokens by name.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::seat::Seat;

#[test]
fn profiles_are_added_used_and_removed() {
    let seat = Seat::new();
    let add = |name: &str, token: &str| {
        let server = seat.url();
        let added =
            seat.run_with(&["profile", "add", name, "--server", &server, "--token", "-"], token);
        assert_eq!(added.code, 0, "{added:?}");
        assert!(!format!("{added:?}").contains("secret"), "{added:?}");
    };
    add("one", "secret-1\n");
    add("two", "secret-2\n");
    let file = seat.path("settings/greenroom/profiles.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = seat.json(&["profile", "list"]);
    let profile = |name: &str, is_current: bool| {
        let server = format!("{}/", seat.url());
        json!({ "name": name, "server": server, "hasToken": true, "isCurrent": is_current })
    };
    assert_eq!(listed, json!([profile("one", true), profile("two", false)]));

    assert_eq!(seat.run(&["profile", "use", "two"]).code, 0);
    assert_eq!(
        seat.json(&["profile", "list"]),
        json!([profile("one", false), profile("two", true)])
    );
    let mut command = seat.command(&["workflows", "list"]);
    command.env_remove("GREENROOM_SERVER");
    assert_eq!(seat.end(command).code, 0);

    assert_eq!(seat.run(&["profile", "remove", "two"]).code, 0);
    let gone = seat.run(&["profile", "remove", "two"]);
    assert_eq!(gone.code, 2);
    assert!(gone.stderr.contains("there is no profile two"), "{gone:?}");
    assert!(!fs::read_to_string(&file).unwrap().contains("secret-2"));
    let far = ["profile", "add", "far", "--server", "http://far.example", "--token", "-"];
    let warned = seat.run_with(&far, "secret-3\n");
    assert!(warned.stderr.contains("the token will be sent unencrypted"), "{warned:?}");
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let seat = Seat::new();
    assert_eq!(seat.run(&["profile", "add", "one", "--server", &seat.url()]).code, 0);
    let file = seat.path("settings/greenroom/profiles.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = seat.run(&["workflows", "list"]);
    assert_eq!(refused.code, 4);
    assert!(
        refused.stderr.contains(
            "other users can read it (mode 0644)\n  keep them to yourself: \
        chmod 600 "
        ),
        "{refused:?}"
    );
}

#[test]
fn a_token_is_not_taken_from_the_command_line() {
    let seat = Seat::new();
    let refused =
        seat.run(&["profile", "add", "one", "--server", &seat.url(), "--token", "secret"]);
    assert_eq!(refused.code, 2);
    let empty =
        seat.run_with(&["profile", "add", "one", "--server", &seat.url(), "--token", "-"], "\n");
    assert_eq!(empty.code, 2);
    assert!(empty.stderr.contains("stdin has no token"), "{empty:?}");
    let add = ["profile", "add", "one", "--server", &seat.url(), "--token", "-"];
    for (token, says) in [("a\nb\n".to_owned(), "one line"), ("x".repeat(20_000), "at most 16384")]
    {
        let refused = seat.run_with(&add, &token);
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.contains(says), "{refused:?}");
    }
    assert!(seat.run(&["profile", "add", "one"]).stderr.contains("a profile needs a server"));
}
