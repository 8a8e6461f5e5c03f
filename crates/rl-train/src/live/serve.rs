//! The report of runs while they go on, for a browser on this machine: made anew for each request, behind an address that
//! nobody can guess.
//!
//! The socket listens on 127.0.0.1 alone. A request without the token, or whose `Host` is another machine's name (a page
//! elsewhere that points its own name here), gets the same bare 404. Nothing but the report can be asked for.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::interrupt;
use crate::recording::Recording;
use crate::report;

/// Between two looks for a reader.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a reader may take to say or hear something.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a request; ours need a few hundred.
const LONGEST: usize = 8192;
/// Between two loads of a page whose run goes on.
const RELOAD_S: u32 = 5;

/// A report that is served.
pub struct Server {
    listener: TcpListener,
    token: String,
    runs: Vec<PathBuf>,
}

impl Server {
    /// Listens for readers of the report on `runs`, on a port that the system chooses.
    ///
    /// # Errors
    /// If the system has no port.
    pub fn open(runs: Vec<PathBuf>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port on 127.0.0.1")?;
        listener.set_nonblocking(true).context("no port on 127.0.0.1")?;
        // A secret and no part of a run: the one number here that no seed may give.
        let token = format!("{:032x}", rand::random::<u128>());
        Ok(Self { listener, token, runs })
    }

    /// Where the report is.
    ///
    /// # Errors
    /// If the socket is gone.
    pub fn address(&self) -> Result<String> {
        Ok(format!("http://{}/{}/", self.listener.local_addr()?, self.token))
    }

    /// Serves beside the run for as long as the process lives.
    pub fn beside(self) {
        thread::spawn(move || {
            loop {
                self.look();
            }
        });
    }

    /// Serves until someone asks to stop.
    pub fn until_interrupted(self) {
        while !interrupt::requested() {
            self.look();
        }
    }

    /// Serves one reader if there is one. A reader who goes away is no error of ours.
    fn look(&self) {
        match self.listener.accept() {
            Ok((stream, _)) => drop(self.serve(stream)),
            Err(_) => thread::sleep(PAUSE),
        }
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = head(&mut stream)?;
        let (status, page) = if self.admits(&request) {
            match self.page() {
                Ok(page) => ("200 OK", page),
                Err(error) => ("500 Internal Server Error", report::escaped(&format!("{error:#}"))),
            }
        } else {
            ("404 Not Found", String::new())
        };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
             X-Frame-Options: DENY\r\nConnection: close\r\n\r\n{page}",
            page.len()
        )?;
        stream.flush()
    }

    /// Whether this request names the token, and this machine as its host.
    fn admits(&self, request: &str) -> bool {
        let mut lines = request.split("\r\n");
        let path = lines.next().and_then(|line| line.strip_prefix("GET /")?.split(' ').next());
        let named = path.is_some_and(|path| same(path.trim_end_matches('/'), &self.token));
        let hosts = lines.filter_map(|line| line.split_once(':'));
        let host = hosts.filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, value)| value.trim());
        let mut hosts = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
        named && hosts.next().is_some_and(|host| host == "127.0.0.1" || host == "localhost")
    }

    /// The report as the runs stand; it loads itself again while one of them goes on.
    fn page(&self) -> Result<String> {
        let runs: Vec<Recording> = self.runs.iter().map(|run| Recording::read(run)).collect::<Result<_>>()?;
        let page = report::page_of(&runs)?;
        if runs.iter().all(|run| run.summary.is_some()) {
            return Ok(page);
        }
        let again = format!("<head><meta http-equiv=\"refresh\" content=\"{RELOAD_S}\">");
        Ok(page.replacen("<head>", &again, 1))
    }
}

/// The head of a request.
fn head(stream: &mut TcpStream) -> std::io::Result<String> {
    let (mut read, mut piece) = (vec![], [0; 1024]);
    while read.len() < LONGEST && !read.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut piece)? {
            0 => break,
            n => read.extend_from_slice(&piece[..n]),
        }
    }
    Ok(String::from_utf8_lossy(&read).into_owned())
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_from_this_machine_is_let_in() {
        let server = Server::open(vec![]).unwrap();
        let admits = |path: &str, host: &str| {
            server.admits(&format!("GET {path} HTTP/1.1\r\nAccept: */*\r\nHost: {host}\r\n\r\n"))
        };
        let right = format!("/{}/", server.token);
        assert!(admits(&right, "127.0.0.1:80") && admits(right.trim_end_matches('/'), "localhost"));
        assert!(!admits(&right, "evil.example:80"), "another name for this machine");
        for path in ["/", "/report.html", &right[..20], &format!("{right}x"), &format!("/x{right}")] {
            assert!(!admits(path, "127.0.0.1"), "{path}");
        }
        assert!(!server.admits(&format!("POST {right} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")));
        assert!(!server.admits(&format!("GET {right} HTTP/1.1\r\n\r\n")), "no host");
        assert!(!server.admits(""));
    }

    #[test]
    fn no_two_addresses_are_alike() {
        let (a, b) = (Server::open(vec![]).unwrap(), Server::open(vec![]).unwrap());
        assert!(a.token != b.token && a.token.len() == 32);
        assert!(a.address().unwrap().starts_with("http://127.0.0.1:"));
    }
}
