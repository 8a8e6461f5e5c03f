//! Numbers between processes: length-prefixed frames over TCP, little-endian.
//!
//! Not encrypted and not authenticated: for the loopback and for networks that are yours (SECURITY.md).

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rl_algos::Link;
use rl_algos::checkpoint::Checkpoint;
use serde::{Deserialize, Serialize};

use super::Order;

/// What every conversation begins with.
const HELLO: &str = "rl-replica-1";
/// The longest frame but for numbers: a checkpoint.
const MOST: u64 = 1 << 34;
/// How long the other side may think.
const PATIENCE: Duration = Duration::from_secs(600);

/// A connection to another replica.
#[derive(Debug)]
pub struct Socket(TcpStream);

#[derive(Serialize, Deserialize)]
struct Greeting {
    hello: String,
    rank: usize,
    size: usize,
    config: String,
    resumes: bool,
}

impl Socket {
    /// Calls the process that serves at `address`, and gives it its place and its order.
    ///
    /// # Errors
    /// If nobody answers, naming the address.
    pub fn call(address: &str, rank: usize, size: usize, order: &Order) -> Result<Self> {
        let nobody =
            || format!("nobody serves at `{address}`; start `rl-train serve --listen {address}` there");
        let mut places = address.to_socket_addrs().with_context(nobody)?;
        let place = places.next().with_context(nobody)?;
        let mut socket =
            Self::new(TcpStream::connect_timeout(&place, Duration::from_secs(10)).with_context(nobody)?)?;
        let (config, resumes) = (order.text.clone(), order.from.is_some());
        let greeting = Greeting { hello: HELLO.into(), rank, size, config, resumes };
        let told = || format!("`{address}` has hung up");
        socket.write_frame(&serde_json::to_vec(&greeting)?).with_context(told)?;
        if let Some((_, path)) = &order.from {
            let bytes = std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
            socket.write_frame(&bytes).with_context(told)?;
        }
        Ok(socket)
    }

    /// The other side of [`call`](Self::call): rank, size and order.
    ///
    /// # Errors
    /// If the caller speaks another language.
    pub fn answer(stream: TcpStream) -> Result<(Self, usize, usize, Order)> {
        let mut socket = Self::new(stream)?;
        let Greeting { hello, rank, size, config, resumes } =
            serde_json::from_slice(&socket.read_frame(1 << 20)?).context("the caller is no rl-train")?;
        ensure!(hello == HELLO, "the caller speaks `{hello}`, but this version `{HELLO}`");
        ensure!((1..size).contains(&rank), "the caller wants rank {rank} of {size}");
        let from = match resumes {
            false => None,
            true => {
                let path = PathBuf::from("the leader's checkpoint");
                let bytes = socket.read_frame(MOST)?;
                Some((Checkpoint::parse(&bytes, &path)?, path))
            }
        };
        Ok((socket, rank, size, Order { text: config, from }))
    }

    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self(stream))
    }

    fn write_frame(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(&(bytes.len() as u64).to_le_bytes())?;
        self.0.write_all(bytes)
    }

    /// A frame of at most `most` bytes; what is claimed is not allocated before it comes.
    fn read_frame(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let mut length = [0; 8];
        self.0.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        if length > most {
            return Err(invalid(format!("a frame of {length} bytes, more than {most}")));
        }
        let mut bytes = Vec::new();
        if (&mut self.0).take(length).read_to_end(&mut bytes)? as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl Link for Socket {
    fn send(&mut self, numbers: &[f32]) -> io::Result<()> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.write_frame(&bytes)
    }

    fn receive(&mut self, numbers: &mut [f32]) -> io::Result<()> {
        let bytes = self.read_frame(4 * numbers.len() as u64)?;
        if bytes.len() != 4 * numbers.len() {
            return Err(invalid(format!("{} bytes instead of {} numbers", bytes.len(), numbers.len())));
        }
        for (x, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(4)) {
            *x = f32::from_le_bytes(bytes.try_into().expect("four bytes"));
        }
        Ok(())
    }
}
