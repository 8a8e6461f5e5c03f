//! `rl-train serve`: a replica for runs that are led elsewhere, one after another.

use std::net::TcpListener;

use anyhow::{Context, Result};
use rl_algos::Team;

use super::follow;
use super::socket::Socket;
use crate::cli::ServeArgs;
use crate::{Outcome, device};

/// Listens, and follows whoever calls until that run is over; then listens again.
///
/// # Errors
/// If the device or the address is not to be had.
pub fn serve(args: &ServeArgs) -> Result<Outcome> {
    device::check(&args.device)?;
    let address = &args.listen;
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen at `{address}`"))?;
    say!("{} serves at {}", args.device, listener.local_addr()?);
    for caller in listener.incoming() {
        let caller = caller.context("a call was lost")?;
        let from = caller.peer_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string());
        let ended = Socket::answer(caller).and_then(|(socket, rank, size, order)| {
            say!("replica {rank} of {size} for {from}");
            follow(&order, &args.device, Team::following(rank, size, Box::new(socket)))
        });
        match ended {
            Ok(()) => say!("the run of {from} is over"),
            Err(error) => say!("the run of {from} has ended: {error:#}"),
        }
    }
    Ok(Outcome::Done)
}
