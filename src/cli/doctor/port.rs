//! The address that the server listens at.

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use super::finding::{Finding, State};
use crate::app;
use crate::cli::healthcheck::{answer_of, reachable};
use crate::config::Config;

const NAME: &str = "port";

/// Time in which a server that has the port answers.
const PATIENCE: Duration = Duration::from_secs(3);

/// Looks whether the port is free, or a greenroom has it.
pub(super) fn look(config: &Config) -> Finding {
    let (host, port) = (&config.server.host, config.server.port);
    let error = match TcpListener::bind((host.trim_matches(['[', ']']), port)) {
        Ok(_) if port == 0 => return Finding::new(State::Good, NAME, "any that is free"),
        Ok(_) => return Finding::new(State::Good, NAME, format!("{host}:{port} is free")),
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
    match app::block_on(answer_of(&url, PATIENCE)) {
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
    use super::*;

    #[test]
    fn a_taken_port_is_a_failure_and_a_free_one_is_none() {
        let busy = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut config = Config::default();
        config.server.port = busy.local_addr().unwrap().port();
        // closes each connection, so that the answer does not take the whole patience
        let closing = std::thread::spawn(move || drop(busy.accept()));
        let finding = look(&config);
        closing.join().unwrap();
        assert_eq!(finding.state, State::Failed);
        assert!(finding.text.contains("is taken by something that does not answer"), "{finding}");
        config.server.port = 0;
        assert_eq!(look(&config).state, State::Good);
    }
}
