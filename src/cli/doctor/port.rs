//! The address that the server listens at.

use std::io;
use std::time::Duration;

use crate::app;
use crate::app::finding::{Finding, State};
use crate::cli::healthcheck::{answer_of, reachable};
use crate::config::Config;

const NAME: &str = "port";

/// Subject of findings about the server that has the port.
const SERVER: &str = "server";

/// Time in which a server that has the port answers.
const PATIENCE: Duration = Duration::from_secs(3);

/// Looks whether the port is free, or a greenroom has it, which is asked whether it takes work.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    let (host, port) = (&config.server.host, config.server.port);
    let of_port = |state, text: String| Finding::new(state, NAME, text);
    let error = match app::try_to_listen(config) {
        Ok(()) if port == 0 => return vec![of_port(State::Good, "any that is free".to_owned())],
        Ok(()) => return vec![of_port(State::Good, format!("{host}:{port} is free"))],
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        let text = format!("cannot listen at {host}:{port}: {error}");
        return vec![of_port(State::Failed, text)];
    }
    if let Err(why) = asked(config, "/livez", "ok") {
        let text = format!(
            "{host}:{port} is taken by something that {why} at /livez; choose another with --port"
        );
        return vec![of_port(State::Failed, text)];
    }
    let text = format!("a server listens at {host}:{port} already");
    let readiness = match asked(config, "/readyz", "ready") {
        Ok(()) => Finding::new(State::Good, SERVER, "the one that listens takes work"),
        Err(why) => {
            Finding::new(State::Failed, SERVER, format!("the one that listens {why} at /readyz"))
        }
    };
    vec![of_port(State::Good, text), readiness]
}

/// Asks the server at the configured address; fails unless its answer begins with this line.
fn asked(config: &Config, path: &str, expected: &str) -> Result<(), String> {
    let url = format!("http://{}:{}{path}", reachable(&config.server.host), config.server.port);
    match app::block_on(answer_of(&url, PATIENCE)) {
        Ok(text) if text == expected => Ok(()),
        Ok(_) => Err("answers something else".to_owned()),
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_taken_port_is_a_failure_and_a_free_one_is_none() {
        for (answer, says) in [
            ("", "that does not answer"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>", "that answers something else"),
        ] {
            let busy = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut config = Config::default();
            config.server.port = busy.local_addr().unwrap().port();
            let answering = std::thread::spawn(move || {
                let (mut caller, _) = busy.accept().unwrap();
                let _ = caller.read(&mut [0; 1024]);
                let _ = caller.write_all(answer.as_bytes());
            });
            let findings = look(&config);
            answering.join().unwrap();
            let [finding] = findings.as_slice() else { panic!("{findings:?}") };
            assert_eq!(finding.state, State::Failed);
            assert!(finding.text.contains(says), "{finding}");
        }
        let mut config = Config::default();
        config.server.port = 0;
        assert!(look(&config).iter().all(|finding| finding.state == State::Good));
    }

    #[test]
    fn a_server_that_takes_no_work_is_a_failure_with_its_reason() {
        for (status, text, state, says) in [
            ("200 OK", "ready\n", State::Good, "takes work"),
            ("503 Service Unavailable", "not ready\nthe disk\n", State::Failed, "ready: the disk"),
        ] {
            let listening = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut config = Config::default();
            config.server.port = listening.local_addr().unwrap().port();
            let answering = std::thread::spawn(move || {
                for (status, text) in [("200 OK", "ok\n"), (status, text)] {
                    let (mut caller, _) = listening.accept().unwrap();
                    let _ = caller.read(&mut [0; 1024]);
                    let _ = write!(caller, "HTTP/1.1 {status}\r\nconnection: close\r\n\r\n{text}");
                }
            });
            let findings = look(&config);
            answering.join().unwrap();
            let [port, server] = findings.as_slice() else { panic!("{findings:?}") };
            assert_eq!((port.state, server.state), (State::Good, state), "{server}");
            assert!(server.text.contains(says), "{server}");
        }
    }
}
