//! Texts before and after redaction.

use proptest::prelude::*;

use super::{Redactor, Secrets};

const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl";

fn redactor(secrets: &[&str]) -> Redactor {
    let mut known = Secrets::default();
    known.extend(secrets.iter().copied());
    Redactor::new(&known)
}

fn redacted(redactor: &Redactor, text: &str) -> String {
    let mut text = text.to_owned();
    assert!(!redactor.redact(&mut text, usize::MAX));
    text
}

#[test]
fn known_secrets_are_redacted_in_all_encodings() {
    let redactor = redactor(&["can+ary/\"0123 \n", "abc", "canary", "canary-long"]);
    for (text, expected) in [
        ("no: can+ary/\"0123!", "no: [redacted]!"),
        ("{\"a\":\"can+ary/\\\"0123\"}", "{\"a\":\"[redacted]\"}"),
        ("path/can%2Bary%2F%220123%20%0A", "path/[redacted]"),
        ("abc is too short", "abc is too short"),
        ("canary-long canaryCANARY", "[redacted] [redacted]CANARY"),
        ("canarycanary", "[redacted]"),
        ("größe canary größe", "größe [redacted] größe"),
    ] {
        assert_eq!(redacted(&redactor, text), expected, "{text}");
    }
}

#[test]
fn placeholders_are_no_secrets() {
    let mut known = Secrets::default();
    known.add_value("MAIN_KEY", "main_key\n");
    known.add_value("OTHER_KEY", "MAIN_KEY");
    known.extend(["secret", "Password ", "secrets"]);
    let redactor = Redactor::new(&known);
    for (text, expected) in [
        ("set secret:NAME or a password", "set secret:NAME or a password"),
        ("main_key MAIN_KEY secrets", "main_key [redacted] [redacted]"),
    ] {
        assert_eq!(redacted(&redactor, text), expected);
    }
}

#[test]
fn texts_shaped_like_secrets_are_redacted() {
    let redactor = redactor(&[]);
    let rows = [
        ("Authorization: Bearer abcdefgh12, then", "Authorization: Bearer [redacted], then"),
        ("authorization=\"basic dXNlcjpwYXNz\"", "authorization=\"basic [redacted]\""),
        ("BEARER   abcdefgh12", "BEARER   [redacted]"),
        ("the bearer is ann, basic needs", "the bearer is ann, basic needs"),
        ("postgres://ann:s3cr@t@db:5432/x", "postgres://[redacted]@db:5432/x"),
        ("https://ghp_0123456789@host/", "https://[redacted]@host/"),
        ("http://host/a@b ://x @", "http://host/a@b ://x @"),
        ("key sk-ab****wxyz. Look", "key [redacted] Look"),
        ("disk-full-of-things", "disk-full-of-things"),
        ("sk-learn", "sk-learn"),
        ("GET /x?key=a&token=b&n=1#c", "GET /x?key=[redacted]&token=[redacted]&n=1#c"),
        (
            "api_key=1234 access_token=ab, TOKEN=x",
            "api_key=[redacted] access_token=[redacted] TOKEN=[redacted]",
        ),
        ("x-api-key: 0123456789\"", "x-api-key: [redacted]"),
        ("\"x-api-key:0123456789\"", "\"x-api-key:[redacted]\""),
        ("key=order-1 monkey=1", "key=order-1 monkey=1"),
        ("größe ?key=größe", "größe ?key=[redacted]"),
        ("as AKIAIOSFODNN7EXAMPLE here", "as [redacted] here"),
    ];
    for (text, expected) in rows {
        assert_eq!(redacted(&redactor, text), expected, "{text}");
    }
    for text in
        [JWT.to_owned(), format!("({JWT})"), format!("token: {JWT}"), format!("Bearer {JWT}")]
    {
        let clean = redacted(&redactor, &text);
        assert_eq!(clean, text.replace(JWT, "[redacted]"));
    }
    assert_eq!(redacted(&redactor, "eyJhbGciOiJIUzI1NiJ9.x"), "eyJhbGciOiJIUzI1NiJ9.x");
}

#[test]
fn values_of_parameters_are_redacted_up_to_their_end() {
    let redactor = redactor(&[]);
    for (text, expected) in [
        // what may belong to a password is left out with it
        ("password=a,b of ann", "password=[redacted] of ann"),
        ("password=Tr0ub4dor&3 of ann", "password=[redacted] of ann"),
        ("password=a#b&c", "password=[redacted]"),
        ("password=a;b)c}d>e]f<g of ann", "password=[redacted] of ann"),
        ("password=a\"b'c`d of ann", "password=[redacted] of ann"),
        ("password={a},b of ann", "password=[redacted] of ann"),
        (r"password=a\ b of ann", "password=[redacted] of ann"),
        ("(password=a), then", "(password=[redacted] then"),
        ("at ?password=Tr0ub4dor&3", "at ?password=[redacted]"),
        ("at ?key=a,b#c d", "at ?key=[redacted] d"),
        ("user=ann&password=a&b", "user=ann&password=[redacted]"),
        // other parameters and lines are not
        ("client_secret=ab12&password=x", "client_secret=[redacted]&password=[redacted]"),
        ("Server=db;Password=a;b;Database=c", "Server=db;Password=[redacted];Database=c"),
        ("password=a,b\nuser=ann", "password=[redacted]\nuser=ann"),
        ("PASSWORD=a\0USER=ann", "PASSWORD=[redacted]\0USER=ann"),
        ("password= is empty, password=\tx", "password= is empty, password=\tx"),
        // values in quotes
        ("password=\"a, b\" of ann", "password=[redacted] of ann"),
        ("password='a b', n=1", "password=[redacted], n=1"),
        (r#"password="a\" b" of ann"#, "password=[redacted] of ann"),
        ("password='a'' b' of ann", "password=[redacted] of ann"),
        ("password='a'b c' of ann", "password=[redacted] of ann"),
        ("password='a b", "password=[redacted]"),
        ("password='', n=1", "password=[redacted], n=1"),
        // parameters in quotes
        ("\"password=a,b\", \"n\"", "\"password=[redacted]\", \"n\""),
        ("{\"e\":\"password=a'b\",\"n\":1}", "{\"e\":\"password=[redacted]\",\"n\":1}"),
        ("\"password=a\"b\" of ann", "\"password=[redacted]\" of ann"),
        ("\"password='a b'\" of ann", "\"password=[redacted]\" of ann"),
        ("'password=' is empty", "'password=' is empty"),
        ("it's password=a'b, of ann", "it's password=[redacted] of ann"),
        ("'so\npassword=a' b", "'so\npassword=[redacted] b"),
        (r#"{\"e\":\"password=a\",\"n\":1} b"#, r#"{\"e\":\"password=[redacted] b"#),
        ("größe `?key=größe`", "größe `?key=[redacted]`"),
        // templates are no secrets, unless there is more
        ("password={{ input.p }} of ann", "password={{ input.p }} of ann"),
        ("'password={{ a }}{{ b }}'", "'password={{ a }}{{ b }}'"),
        ("password={{a}}b of ann", "password=[redacted] of ann"),
        ("password={{a b", "password=[redacted] b"),
    ] {
        assert_eq!(redacted(&redactor, text), expected, "{text}");
    }
    for beginning in ["password=", "sk-", "x-token=a\""] {
        let text = beginning.repeat(200_000);
        assert!(redacted(&redactor, &text).ends_with("[redacted]"), "{beginning}");
    }
    let templates = format!("password={}", "{{}}".repeat(100_000));
    assert_eq!(redacted(&redactor, &templates), templates);
}

#[test]
fn names_that_end_with_a_word_for_secrets_have_secret_values() {
    let redactor = redactor(&[]);
    for (text, expected) in [
        ("DB_PASSWORD=x1 n", "DB_PASSWORD=[redacted] n"),
        ("pgpassword=x1 n", "pgpassword=[redacted] n"),
        ("pwd=x1 n", "pwd=[redacted] n"),
        ("Uid=ann;Pwd=x;Db=c", "Uid=ann;Pwd=[redacted];Db=c"),
        ("DB_PWD=/x1 n", "DB_PWD=[redacted] n"),
        ("AWS_SECRET_ACCESS_KEY=ab/c+d n", "AWS_SECRET_ACCESS_KEY=[redacted] n"),
        ("GH_TOKEN=x1, n", "GH_TOKEN=[redacted] n"),
        ("app-secret=x1 n", "app-secret=[redacted] n"),
        ("clientSecret=x1 n", "clientSecret=[redacted] n"),
        ("spring.datasource.password=x1 n", "spring.datasource.password=[redacted] n"),
        ("--password=x1 n", "--password=[redacted] n"),
        // headers and members without quotes
        ("password: hunter2 of ann", "password: [redacted] of ann"),
        ("db_password: \"a b\", n", "db_password: [redacted], n"),
        ("secret:\tx1\nnext: x", "secret:\t[redacted]\nnext: x"),
        ("pwd: x1 n", "pwd: [redacted] n"),
        ("{user: 'ann', password: 'a b'}", "{user: 'ann', password: [redacted]}"),
        ("auth-token: abc n", "auth-token: [redacted] n"),
        ("token: abcdef12 n", "token: [redacted] n"),
        ("user: ann,\n  token: abcdef12", "user: ann,\n  token: [redacted]"),
        ("password: {{ input.p }} n", "password: {{ input.p }} n"),
        ("token: \"a password=x1\" n", "token: \"a password=[redacted]\" n"),
        ("Cookie: a=b; c=d\r\nHost: x", "Cookie: [redacted]\r\nHost: x"),
        ("set-cookie:sid=1; Path=/", "set-cookie:[redacted]"),
        ("curl -H 'Cookie: a=b; c=d' https://x", "curl -H 'Cookie: [redacted]' https://x"),
        // members
        ("{\"auth_token\":\"a,b\",\"n\":1}", "{\"auth_token\":\"[redacted]\",\"n\":1}"),
        ("{'password': 'it\\'s', 'n': 1}", "{'password': '[redacted]', 'n': 1}"),
        ("{'db-secret': \"it's\", 'n': 1}", "{'db-secret': \"[redacted]\", 'n': 1}"),
        ("{\"Set-Cookie\": \"a=b; c=d\"}", "{\"Set-Cookie\": \"[redacted]\"}"),
        ("{\"awsSecretAccessKey\":\"a\"}", "{\"awsSecretAccessKey\":\"[redacted]\"}"),
        (
            r#""{\"user_token\": \"a\\\"b\\\\\", \"n\": 1}""#,
            r#""{\"user_token\": \"[redacted]\", \"n\": 1}""#,
        ),
        (r#""{\"secret\":\"a""#, r#""{\"secret\":\"[redacted]""#),
    ] {
        assert_eq!(redacted(&redactor, text), expected, "{text}");
    }
    for text in [
        "password: must be at least 8 characters",
        "secret: the environment variable X is not set",
        "password: missing; user: missing",
        "unexpected token: }, token: identifier",
        "it gets no token: 127.0.0.1: it answered",
        "invalid_token: The access token expired",
        "password:\n  next",
        "api_key = \"secret:NAME\", Token::new(1), secret:NAME",
        "PWD=/home/ann OLDPWD=/root",
        "tokens=3 max_tokens: 3 secrets: 1 passwords=x primary_key=5 monkey=x cwd=/x",
        "AWS_ACCESS_KEY_ID=x",
        "cookies: 3, cookie=x",
        "Cookie: [redacted] next",
        "{'tokens': 'a', \"key\": \"a\", \"token': 'a'}",
        "12:30:05 a=b c: d",
    ] {
        assert_eq!(redacted(&redactor, text), text);
    }
}

#[test]
fn colours_hide_no_secrets() {
    let redactor = redactor(&["canary-4711"]);
    for (text, expected) in [
        ("\u{1b}[31mghp_abcdefgh12\u{1b}[0m refused", "\u{1b}[31m[redacted]\u{1b}[0m refused"),
        ("x\u{1b}[31mghp_abcdefgh12", "x\u{1b}[31m[redacted]"),
        ("password=\u{1b}[1mhunter2secret\u{1b}[0m", "password=\u{1b}[1m[redacted]\u{1b}[0m"),
        (
            "password=\u{1b}[1;38;5;9mhun\u{1b}(B\u{1b}[mter2 a",
            "password=\u{1b}[1;38;5;9m[redacted] a",
        ),
        (
            "pass\u{1b}[1mword\u{1b}[0m=\u{1b}[Kx1 n",
            "pass\u{1b}[1mword\u{1b}[0m=\u{1b}[K[redacted] n",
        ),
        ("at cana\u{1b}[7mry-4711!", "at [redacted]!"),
        ("größe\u{1b}[0m \u{1b}[1msk-ab****wxyz", "größe\u{1b}[0m \u{1b}[1m[redacted]"),
        // a line break ends an empty value
        ("password=\u{1b}[0m\nnext", "password=\u{1b}[0m\nnext"),
        ("\u{1b}[31mplain\u{1b}[0m \u{1b}[", "\u{1b}[31mplain\u{1b}[0m \u{1b}["),
    ] {
        assert_eq!(redacted(&redactor, text), expected, "{text:?}");
    }
}

#[test]
fn long_texts_are_redacted_in_linear_time() {
    let redactor = redactor(&[]);
    for part in [
        "password='",
        "password={{a ",
        "token: \"",
        "cookie: ",
        "ask-",
        "-eyJ",
        "\"token\":\"\\",
        "'secret': \"",
        "\\\"token\\\":\\\"",
        "a=",
        "\u{1b}[31mtoken=",
        "\u{1b}[",
        "a_secret: ",
    ] {
        let text = part.repeat(40_000);
        let clean = redacted(&redactor, &text);
        assert!(clean.len() <= 2 * text.len(), "{part}");
    }
}

#[test]
fn members_of_json_are_redacted_with_any_spaces() {
    let redactor = redactor(&[]);
    let names = "token access_token refresh_token api_key apiKey password passwd secret client_secret private_key";
    for name in names.split_whitespace() {
        for colon in [":", ": ", " : ", ":\n\t", "\r\n:  "] {
            let text = |value: &str| format!("{{\"{name}\"{colon}\"{value}\", \"n\": 1}}");
            let clean = redacted(&redactor, &text(r#"a,b \"c&d\\"#));
            assert_eq!(clean, text("[redacted]"), "{clean}");
        }
    }
    for text in [
        "\"token\"",
        "\"token\":",
        "\"token\": 1",
        "\"token\": \"\"",
        "\"token\" \"a\"",
        "\"tokens\":\"a\"",
    ] {
        assert_eq!(redacted(&redactor, text), text);
    }
    assert_eq!(redacted(&redactor, "\"token\":\"a"), "\"token\":\"[redacted]");
}

#[test]
fn a_truncated_text_shows_no_part_of_a_secret() {
    let redactor = redactor(&["canary-4711"]);
    for (text, bytes_max, expected, is_cut) in [
        ("0123456789", 10, "0123456789", false),
        ("0123456789", 4, "0123", true),
        ("größe", 3, "gr", true),
        ("01 canary-4711 89", 6, "01 [redacted]", true),
        ("01 canary-4711 89", 3, "01 ", true),
        ("canary-4711 canary-4711 89", 14, "[redacted] [redacted]", true),
    ] {
        let mut cut = text.to_owned();
        assert_eq!(redactor.redact(&mut cut, bytes_max), is_cut, "{text} at {bytes_max}");
        assert_eq!(cut, expected, "{text} at {bytes_max}");
    }
    assert!(redactor.bytes_needed(10) >= 10 + "canary-4711".len());
}

#[test]
fn values_of_secret_names_are_redacted() {
    assert!(Redactor::is_secret_name("Authorization") && Redactor::is_secret_name("token"));
    assert!(!Redactor::is_secret_name("tokens") && !Redactor::is_secret_name("step"));
    let mut secrets = Secrets::default();
    secrets.add("canary-4711");
    assert_eq!(format!("{secrets:?}"), "Secrets(..)");
}

proptest! {
    #[test]
    fn a_known_secret_is_never_shown(
        before in ".{0,40}",
        secret in "[a-zA-Z0-9+/=_\"\\\\-]{6,30}",
        behind in ".{0,40}",
        bytes_max in 0_usize..120,
    ) {
        prop_assume!(!"[redacted]".contains(&secret));
        let redactor = redactor(&[&secret]);
        let mut text = format!("{before}{secret}{behind}");
        redactor.redact(&mut text, bytes_max);
        let around = format!("{before}[redacted]{behind}");
        prop_assert!(!text.contains(&secret) || around.contains(&secret), "{text}");
    }

    #[test]
    fn any_text_can_be_redacted(text in "(Bearer |basic |eyJ|\\.|://|@|sk-|[?&]key=|token=|.){0,40}") {
        let redactor = redactor(&["canary-4711"]);
        let once = redacted(&redactor, &text);
        prop_assert!(once.len() <= text.len() + 10 * text.len());
    }
}
