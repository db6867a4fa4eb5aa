//! Registries on real ports, and real programs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use semver::Version;

use super::{InstallCommand, RegistryAddress, SparseIndex};
use crate::maintenance::{IndexError, InstallError, Installer as _, PackageIndex as _};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

/// A server that answers one connection after the other and reports the requests.
struct Registry {
    host: String,
    requests: Receiver<String>,
}

impl Registry {
    /// Writes the responses as they are, one per connection, then closes the port.
    fn answering(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let (report, requests) = channel();
        std::thread::spawn(move || {
            for answer in answers {
                let Ok((stream, _)) = listener.accept() else { return };
                let Some(line) = head_of(&stream) else { return };
                let _ = report.send(line);
                // a client that has read enough disconnects
                let _ = (&stream).write_all(&answer);
            }
        });
        Self { host, requests }
    }

    fn index(&self) -> SparseIndex {
        SparseIndex::new(format!("sparse+http://{}/base", self.host).parse().unwrap())
    }

    async fn versions(&self) -> Result<Vec<String>, IndexError> {
        let versions = self.index().versions().await?;
        Ok(versions.iter().map(Version::to_string).collect())
    }
}

/// Reads a request to the end of its head and returns its first line.
fn head_of(stream: &TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next()?;
    lines.find(String::is_empty).map(|_| first)
}

fn answer(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {length}\r\n");
    format!("{head}{headers}\r\n{body}").into_bytes()
}

const LINES: &str = "{\"name\":\"greenroom\",\"vers\":\"0.1.0\",\"yanked\":false}\n\
                     {\"name\":\"greenroom\",\"vers\":\"0.2.0\",\"yanked\":false}\n";

#[tokio::test]
async fn the_index_is_read_from_the_path_of_the_package() {
    let registry = Registry::answering(vec![answer(200, "", LINES)]);
    assert_eq!(registry.versions().await.unwrap(), ["0.1.0", "0.2.0"]);
    assert_eq!(registry.requests.recv().unwrap(), "GET /base/gr/ee/greenroom HTTP/1.1");
}

#[tokio::test]
async fn every_response_of_an_index_is_classified() {
    let large = "x".repeat(4 * 1024 * 1024 + 1);
    let rows = [
        (answer(404, "", "nothing"), Ok(vec![])),
        (answer(410, "", ""), Ok(vec![])),
        (answer(451, "", ""), Ok(vec![])),
        (answer(401, "", ""), Err(IndexError::Status(401))),
        (answer(500, "", LINES), Err(IndexError::Status(500))),
        (answer(204, "", ""), Err(IndexError::Status(204))),
        (answer(200, "", "<html>"), Err(IndexError::NoIndex)),
        (answer(200, "", ""), Err(IndexError::NoIndex)),
        (answer(200, "", &large), Err(IndexError::TooLarge { bytes_max: 4 * 1024 * 1024 })),
        // no length, and too many bytes
        (
            [&b"HTTP/1.1 200 x\r\n\r\n"[..], large.as_bytes()].concat(),
            Err(IndexError::TooLarge { bytes_max: 4 * 1024 * 1024 }),
        ),
        (b"HTTP/1.1 200 x\r\ncontent-length: 99\r\n\r\n{".to_vec(), Err(IndexError::Broken)),
        (b"SSH-2.0-x\r\n".to_vec(), Err(IndexError::Unreachable)),
        (Vec::new(), Err(IndexError::Unreachable)),
    ];
    for (answer, expected) in rows {
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(60)]).into_owned();
        let registry = Registry::answering(vec![answer]);
        assert_eq!(registry.versions().await, expected, "{shown}");
    }
}

#[tokio::test]
async fn redirects_are_followed_within_the_host() {
    let home = |to: &str| answer(302, &format!("location: {to}\r\n"), "");
    let registry = Registry::answering(vec![home("/elsewhere"), answer(200, "", LINES)]);
    assert_eq!(registry.versions().await.unwrap().len(), 2);
    registry.requests.recv().unwrap();
    assert_eq!(registry.requests.recv().unwrap(), "GET /elsewhere HTTP/1.1");

    let other = Registry::answering(vec![answer(200, "", LINES)]);
    let away = home(&format!("http://{}/gr/ee/greenroom", other.host));
    let registry = Registry::answering(vec![away]);
    assert_eq!(registry.versions().await, Err(IndexError::Status(302)));
    assert!(other.requests.try_recv().is_err(), "another host was called");

    let registry = Registry::answering(vec![home("/again"); 20]);
    assert_eq!(registry.versions().await, Err(IndexError::Status(302)));
    assert_eq!(registry.requests.try_iter().count(), 6);
}

#[tokio::test]
async fn an_unreachable_or_silent_registry_is_an_error() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address: RegistryAddress = format!("http://{closed}").parse().unwrap();
    assert_eq!(SparseIndex::new(address).versions().await, Err(IndexError::Unreachable));

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap()).parse().unwrap();
    let timeout = Duration::from_millis(50);
    let index = SparseIndex::with_timeout(address, timeout);
    assert_eq!(index.versions().await, Err(IndexError::Silent(timeout)));
}

async fn run(argv: &[&str], timeout: Duration) -> Result<(), InstallError> {
    let argv: Vec<_> = argv.iter().map(|&it| it.to_owned()).collect();
    InstallCommand::new(&argv, timeout).unwrap().install("greenroom").await
}

/// Writes a script for `sh`. Not a program itself: a file that was just written cannot always be
/// executed while other threads start programs.
fn script(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_exit_status_of_a_command_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let seven = script(folder.path(), "seven", "exit 7");
    let killed = script(folder.path(), "killed", "kill -TERM $$");
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let rows: [(&[&str], Result<(), InstallError>); 6] = [
        (&["true"], Ok(())),
        (&["false"], Err(InstallError::ExitCode(1))),
        (&["sh", &seven], Err(InstallError::ExitCode(7))),
        (&["sh", &killed], Err(InstallError::Signal(15))),
        (&["no-such-program-here"], Err(InstallError::Missing)),
        (&[plain.to_str().unwrap()], Err(InstallError::NotStarted("permission denied".to_owned()))),
    ];
    for (argv, expected) in rows {
        assert_eq!(run(argv, LONG).await, expected, "{argv:?}");
    }
}

#[tokio::test]
async fn arguments_reach_the_program_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let note = script(folder.path(), "note", &format!("printf '<%s>' \"$@\" > {}", out.display()));
    run(&["sh", &note, "{package}", "--at={package};id", "$HOME *", ""], LONG).await.unwrap();
    let output = std::fs::read_to_string(out).unwrap();
    assert_eq!(output, "<greenroom><--at=greenroom;id><$HOME *><>");
}

#[tokio::test]
async fn a_command_gets_few_variables_and_empty_input() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let look = format!("env > {0}; cat >> {0}; echo end >> {0}", out.display());
    let look = script(folder.path(), "look", &look);
    run(&["sh", &look], LONG).await.unwrap();
    let output = std::fs::read_to_string(out).unwrap();
    assert!(output.contains("PATH=") && output.ends_with("end\n"), "{output}");
    // cargo gives these to tests; the shell itself makes `PWD`, `SHLVL`, `_`
    assert!(
        !output.contains("CARGO_PKG_NAME") && !output.contains("CARGO_MANIFEST_DIR"),
        "{output}"
    );
}

#[tokio::test]
async fn a_command_with_much_output_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let talk = "i=0; while [ $i -lt 20000 ]; do echo \"line $i\"; echo \"error $i\" >&2; \
                i=$((i+1)); done";
    let talk = script(folder.path(), "talk", talk);
    assert_eq!(run(&["sh", &talk], LONG).await, Ok(()));
}

/// A command that never ends, with a child that never ends, and a pipe that both hold open.
struct Endless {
    folder: tempfile::TempDir,
    begun: Option<tokio::sync::oneshot::Receiver<()>>,
    ended: Receiver<()>,
}

impl Endless {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let text = format!("exec 3> {}; sleep 1000 & echo >&3; sleep 1000", path.display());
        script(folder.path(), "endless", &text);
        let (report_begun, begun) = tokio::sync::oneshot::channel();
        let (report_ended, ended) = channel();
        std::thread::spawn(move || {
            let mut pipe = std::fs::File::open(path).unwrap();
            pipe.read_exact(&mut [0]).unwrap();
            report_begun.send(()).unwrap();
            // until both have ended
            pipe.read_to_end(&mut Vec::new()).unwrap();
            report_ended.send(()).unwrap();
        });
        Self { folder, begun: Some(begun), ended }
    }

    async fn run(&self, timeout: Duration) -> Result<(), InstallError> {
        let script = self.folder.path().join("endless");
        run(&["sh", script.to_str().unwrap()], timeout).await
    }
}

#[tokio::test]
async fn a_command_that_times_out_is_killed_with_its_children() {
    let endless = Endless::new();
    let timeout = Duration::from_secs(1);
    let error = endless.run(timeout).await.unwrap_err();
    let text = "the command did not end within 1s";
    assert_eq!((error.to_string().as_str(), &error), (text, &InstallError::TooSlow(timeout)));
    endless.ended.recv_timeout(LONG).unwrap();
}

#[tokio::test]
async fn a_command_whose_future_is_dropped_is_killed() {
    let mut endless = Endless::new();
    let begun = endless.begun.take().unwrap();
    tokio::select! {
        outcome = endless.run(LONG) => panic!("{outcome:?}"),
        begun = begun => begun.unwrap(),
    }
    endless.ended.recv_timeout(LONG).unwrap();
}

#[tokio::test]
async fn a_process_left_behind_by_a_command_does_not_delay_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let leave = script(folder.path(), "leave", "sleep 30 & echo $! > \"$1\"; exit 0");
    let pid = folder.path().join("pid");
    let left = tokio::time::timeout(LONG, run(&["sh", &leave, pid.to_str().unwrap()], LONG)).await;
    assert_eq!(left, Ok(Ok(())));
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(std::process::Command::new("kill").arg(pid.trim()).status().unwrap().success());
}
