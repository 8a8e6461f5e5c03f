//! A served report: on this machine alone, behind its token.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::Place;

/// A command that serves, and the host and path of its address.
struct Served {
    child: Child,
    host: String,
    path: String,
}

impl Served {
    fn start(place: &Place, line: &str) -> Self {
        let mut child = place.command(line).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.find(|line| line.contains("http://")).unwrap();
        let address = address.split("http://").nth(1).unwrap();
        let (host, path) = address.split_once('/').unwrap();
        Self { child, host: host.into(), path: format!("/{path}") }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_report_is_served_to_who_knows_the_address_until_ctrl_c() {
    let place = Place::new();
    place.succeeds("train tiny.toml --out run");
    let mut served = Served::start(&place, "report run --serve");
    assert!(served.host.starts_with("127.0.0.1:"), "{}", served.host);
    let answer = served.get(&served.path);
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("<h2 id=\"verdict-title\">"),
        "{answer}"
    );
    assert!(!answer.contains("http-equiv=\"refresh\""), "a finished run does not change");
    for path in ["/", "/report.html", "/../run/config.toml", &served.path[..10]] {
        let answer = served.get(path);
        assert!(answer.starts_with("HTTP/1.1 404") && answer.ends_with("\r\n\r\n"), "{path}: {answer}");
    }
    let id = served.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_run_shows_its_report_while_it_goes_on() {
    let place = Place::new();
    let served = Served::start(&place, "train tiny.toml --out run --serve --set total_steps=100000000");
    let answer = served.get(&served.path);
    assert!(answer.contains("http-equiv=\"refresh\" content=\"5\""), "{answer}");
    assert!(answer.contains("The run has no summary yet") || answer.contains("Nothing to judge yet"));
}
