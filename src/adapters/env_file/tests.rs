//! Files in many shapes, and other things in place of a file.

use std::os::unix::fs::symlink;
use std::process::Command;

use tempfile::TempDir;

use super::*;

const PUBLIC: &str = "SERVICE_PUBLIC_KEY";
const SECRET: &str = "SERVICE_SECRET_KEY";

#[test]
fn written_values_are_read_back() {
    let values = ["pk", "", "two words", "it's", r"a\\b", r"end\", "\"$HOME` \\ '", "#no", "a#b"];
    for value in values {
        let text = with_variables(b"A=1\n", &[(PUBLIC, value)]);
        assert_eq!(value_of(&text, PUBLIC).as_deref(), Some(value));
    }
    let rows = [
        ("export SERVICE_PUBLIC_KEY = pk # mine\r\n", Some("pk")),
        ("SERVICE_PUBLIC_KEY='a' # b\n", Some("a")),
        ("SERVICE_PUBLIC_KEY=\"a\\\"b\"", Some("a\"b")),
        ("SERVICE_PUBLIC_KEY='open\nA=1", Some("'open")),
        ("SERVICE_PUBLIC_KEY=first\nSERVICE_PUBLIC_KEY=second\n", Some("first")),
        ("#SERVICE_PUBLIC_KEY=a\n", None),
        ("", None),
    ];
    for (text, expected) in rows {
        assert_eq!(value_of(text.as_bytes(), PUBLIC).as_deref(), expected, "{text:?}");
    }
    assert_eq!(value_of(b"SERVICE_PUBLIC_KEY=\xff\n", PUBLIC), None);
}

fn set(old: &[u8]) -> String {
    let new = with_variables(old, &[(PUBLIC, "pk"), (SECRET, "sk")]);
    String::from_utf8(new).unwrap()
}

#[test]
fn variables_are_set_in_place_and_the_rest_is_kept() {
    let both = "SERVICE_PUBLIC_KEY=pk\nSERVICE_SECRET_KEY=sk\n";
    let rows: [(&str, String); 22] = [
        ("", both.to_owned()),
        ("A=1\n", format!("A=1\n{both}")),
        ("A=1", format!("A=1\n{both}")),
        ("\n", format!("\n{both}")),
        ("A=1\r\nB=2\r\n", format!("A=1\r\nB=2\r\n{}", both.replace('\n', "\r\n"))),
        ("A=1\r\nB=2", format!("A=1\r\nB=2\r\n{}", both.replace('\n', "\r\n"))),
        (
            "# note\nSERVICE_SECRET_KEY=old\nB = 2 # two\nSERVICE_PUBLIC_KEY=old",
            "# note\nSERVICE_SECRET_KEY=sk\nB = 2 # two\nSERVICE_PUBLIC_KEY=pk".to_owned(),
        ),
        (
            "SERVICE_PUBLIC_KEY=old\r\nA=1\nSERVICE_SECRET_KEY=\n",
            "SERVICE_PUBLIC_KEY=pk\r\nA=1\nSERVICE_SECRET_KEY=sk\n".to_owned(),
        ),
        (
            "export SERVICE_PUBLIC_KEY='a'\n\t export\tSERVICE_SECRET_KEY = \"b\" # c\n",
            "export SERVICE_PUBLIC_KEY=pk\n\t export\tSERVICE_SECRET_KEY=sk\n".to_owned(),
        ),
        // one assignment of each remains
        (
            "SERVICE_PUBLIC_KEY=a\nSERVICE_SECRET_KEY=b\nX=1\nSERVICE_PUBLIC_KEY=c\n\
             export SERVICE_PUBLIC_KEY=d\nSERVICE_SECRET_KEY=e",
            "SERVICE_PUBLIC_KEY=pk\nSERVICE_SECRET_KEY=sk\nX=1\n".to_owned(),
        ),
        // comments and other names are not assignments
        ("#SERVICE_PUBLIC_KEY=a\n", format!("#SERVICE_PUBLIC_KEY=a\n{both}")),
        ("MY_SERVICE_PUBLIC_KEY=a\n", format!("MY_SERVICE_PUBLIC_KEY=a\n{both}")),
        ("SERVICE_PUBLIC_KEY_2=a\n", format!("SERVICE_PUBLIC_KEY_2=a\n{both}")),
        ("service_public_key=a\n", format!("service_public_key=a\n{both}")),
        ("SERVICE_PUBLIC_KEY\n=\n=x\n", format!("SERVICE_PUBLIC_KEY\n=\n=x\n{both}")),
        ("exportSERVICE_PUBLIC_KEY=a\n", format!("exportSERVICE_PUBLIC_KEY=a\n{both}")),
        // values of several lines
        (
            "A=\"1\nSERVICE_PUBLIC_KEY=inside\n\"\nSERVICE_SECRET_KEY=old\n",
            "A=\"1\nSERVICE_PUBLIC_KEY=inside\n\"\nSERVICE_SECRET_KEY=sk\nSERVICE_PUBLIC_KEY=pk\n"
                .to_owned(),
        ),
        (
            "SERVICE_PUBLIC_KEY='a\nb' # c\nSERVICE_SECRET_KEY=\"x\\\"\ny\"\nB=2\n",
            "SERVICE_PUBLIC_KEY=pk\nSERVICE_SECRET_KEY=sk\nB=2\n".to_owned(),
        ),
        // a quote that is never closed does not span lines
        (
            "A='open\nSERVICE_PUBLIC_KEY=a\nSERVICE_SECRET_KEY=\"b\nB=2\n",
            "A='open\nSERVICE_PUBLIC_KEY=pk\nSERVICE_SECRET_KEY=sk\nB=2\n".to_owned(),
        ),
        ("A=it's\nSERVICE_PUBLIC_KEY=don't", {
            "A=it's\nSERVICE_PUBLIC_KEY=pk\nSERVICE_SECRET_KEY=sk\n".to_owned()
        }),
        ("\u{feff}SERVICE_PUBLIC_KEY=a\n", format!("\u{feff}{both}")),
        ("\u{feff}", format!("\u{feff}{both}")),
    ];
    for (old, expected) in rows {
        assert_eq!(set(old.as_bytes()), expected, "for {old:?}");
        assert_eq!(set(expected.as_bytes()), expected, "again, for {old:?}");
    }
}

#[test]
fn bytes_that_are_not_utf8_are_kept() {
    let new = with_variables(b"A=\xff\xfe\n\x00B\n", &[(PUBLIC, "pk")]);
    assert_eq!(new, b"A=\xff\xfe\n\x00B\nSERVICE_PUBLIC_KEY=pk\n");
}

/// Value of the variable in a shell that has read the file.
fn read_by_a_shell(folder: &TempDir) -> String {
    let script = format!(". ./.env && printf %s \"${PUBLIC}\"");
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_shell_reads_back_any_value() {
    let folder = tempfile::tempdir().unwrap();
    let file = EnvFile::new(folder.path().join(".env"));
    let values = [
        "pk_live-1.2:3/4+5@6=",
        "two words",
        " margin ",
        "a#b",
        "a #b",
        "$HOME ${HOME} $(id) `id`",
        "say \"hi\"",
        "it's",
        "it's \"$HOME\" `id` \\",
        "a\\nb",
        "a\\\\b",
        "ends with \\",
        "\\",
        "'",
        "\"",
        "!x;y|z&w>f<g*?[a]{b}~",
        "schlüssel-鍵",
    ];
    for value in values {
        file.set(&[(PUBLIC, value), (SECRET, "sk")]).unwrap();
        assert_eq!(read_by_a_shell(&folder), value);
        let text = fs::read_to_string(folder.path().join(".env")).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn only_the_owner_can_read_the_file_and_no_temporary_file_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".env");
    let file = EnvFile::new(path.clone());
    file.set(&[(PUBLIC, "one")]).unwrap();
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    file.set(&[(PUBLIC, "two")]).unwrap();
    assert_eq!((mode(&path), names(folder.path())), (0o600, vec![".env".to_owned()]));
    assert_eq!(fs::read_to_string(&path).unwrap(), "SERVICE_PUBLIC_KEY=two\n");
}

#[test]
fn links_are_followed_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("shared")).unwrap();
    fs::write(at("shared/real"), "A=1\n").unwrap();
    symlink("real", at("shared/link")).unwrap();
    symlink("shared/link", at(".env")).unwrap();
    symlink("shared/later", at("dangling")).unwrap();
    for (name, target, before) in
        [(".env", "shared/real", "A=1\n"), ("dangling", "shared/later", "")]
    {
        EnvFile::new(at(name)).set(&[(PUBLIC, "pk")]).unwrap();
        assert!(fs::symlink_metadata(at(name)).unwrap().is_symlink());
        let text = fs::read_to_string(at(target)).unwrap();
        assert_eq!(text, format!("{before}SERVICE_PUBLIC_KEY=pk\n"));
    }
    assert_eq!(names(&at("shared")), ["later", "link", "real"]);
    symlink("loop", at("loop")).unwrap();
    let error = EnvFile::new(at("loop")).set(&[(PUBLIC, "pk")]).unwrap_err();
    assert_eq!(error.0, "following a link: too many links");
}

#[test]
fn anything_but_a_regular_file_is_refused_without_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("file"), "A=1").unwrap();
    fs::write(at("large"), vec![b'#'; usize::try_from(BYTES_MAX).unwrap() + 1]).unwrap();
    let rows = [
        ("folder", "reading: it is not a regular file"),
        ("none/.env", "writing: entity not found"),
        ("file/.env", "checking the file: not a directory"),
        ("large", "reading: it is larger than 1048576 bytes"),
    ];
    for (name, reason) in rows {
        let error = EnvFile::new(at(name)).set(&[(PUBLIC, "hidden")]).unwrap_err();
        assert_eq!(error.0, reason, "for {name}");
    }
    assert_eq!(names(folder.path()), ["file", "folder", "large"]);
    assert_eq!(fs::metadata(at("large")).unwrap().len(), BYTES_MAX + 1);
}
