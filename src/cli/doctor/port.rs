//! The address that the server listens at.

use std::io;
use std::time::Duration;

use crate::app;
use crate::app::finding::{Finding, State};
use crate::cli::healthcheck::{answer_of, reachable};
use crate::config::Config;

const NAME: &str = "port";

/// Time in which a server that has the port answers.
const PATIENCE: Duration = Duration::from_secs(3);

/// Looks whether the port is free, or a greenroom has it.
pub(super) fn look(config: &Config) -> Finding {
    let (host, port) = (&config.server.host, config.server.port);
    let error = match app::try_to_listen(config) {
        Ok(()) if port == 0 => return Finding::new(State::Good, NAME, "any that is free"),
        Ok(()) => return Finding::new(State::Good, NAME, format!("{host}:{port} is free")),
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        return Finding::new(
            State::Failed,
            NAME,
            format!("cannot listen at {host}:{port}: {error}"),
        );
    }
    let url = format!("http://{}:{port}/livez", reachable(host));
    let answer = app::block_on(answer_of(&url, PATIENCE));
    let is_ours = |text: &String| text == "ok";
    let other = || "answers something else".to_owned();
    match answer.and_then(|text| Some(text).filter(is_ours).ok_or_else(other)) {
        Ok(_) => {
            Finding::new(State::Good, NAME, format!("a server listens at {host}:{port} already"))
        }
        Err(why) => {
            let text = format!(
                "{host}:{port} is taken by something that {why} at /livez; choose another with --port"
            );
            Finding::new(State::Failed, NAME, text)
        }
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
            let finding = look(&config);
            answering.join().unwrap();
            assert_eq!(finding.state, State::Failed);
            assert!(finding.text.contains(says), "{finding}");
        }
        let mut config = Config::default();
        config.server.port = 0;
        assert_eq!(look(&config).state, State::Good);
    }
}
