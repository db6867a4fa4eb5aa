//! Missing secrets of steps.

use crate::config::Config;

#[test]
fn a_missing_secret_of_a_step_has_a_place() {
    let text = "\
[[workflows.w.steps]]
id = 'a'
command = { argv = ['x'], env = { B = 'secret:SET', A = 'secret:NOPE' } }
[[workflows.w.steps]]
id = 'all'
type = 'andAll'
blocks = ['x']
[[workflows.w.blocks.x]]
id = 'b'
[workflows.w.blocks.x.http]
url = 'https://a.example'
headers.authorization = 'Bearer secret:EMPTY'
headers.x-key = '${BROKEN}'
";
    let config = Config::parse(text, "c.toml").unwrap();
    let environment = |name: &str| match name {
        "SET" => Some("set".to_owned()),
        "EMPTY" => Some(String::new()),
        "BROKEN" => Some("two\nlines".to_owned()),
        _ => None,
    };
    let missing = config.check_secrets(environment);
    assert_eq!(
        missing.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "c.toml:3:57: workflows.w.steps.a.command.env.A: the environment variable NOPE is not \
             set",
            "c.toml:12:25: workflows.w.blocks.x.b.http.headers.authorization: the environment \
             variable EMPTY is empty",
            "c.toml:13:17: workflows.w.blocks.x.b.http.headers.x-key: the environment variable \
             BROKEN contains a line break or another character that is not allowed in a header",
        ]
    );
}
