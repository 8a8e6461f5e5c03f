//! Replicas of a run on other devices: threads of this process, or `rl-train serve` behind a socket.
//!
//! `--devices flex,flex` is two threads; `--devices flex,remote:HOST:PORT` is this process and one that serves. The first
//! device is the run's own: its replica writes the folder, and when it ends, for whatever reason, the others do. A replica
//! that goes ends the run at that update; its last checkpoint goes on with any other number of replicas.

pub mod serve;
pub mod socket;

use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result};
use rl_algos::checkpoint::Checkpoint;
use rl_algos::{Link, OnAlarm, PreferenceLoss, Team};

use crate::assemble::{Job, assemble};
use crate::config::error::ConfigError;
use crate::config::{AlgoConfig, RunConfig};
use crate::device;
use crate::drive::Session;
use crate::recorder::restore;
use socket::Socket;

/// The replicas of `--devices`.
#[derive(Debug, Clone, PartialEq)]
pub struct Devices(Vec<Place>);

#[derive(Debug, Clone, PartialEq)]
enum Place {
    /// A device of this process.
    Here(String),
    /// The address of a process that serves.
    There(String),
}

/// What a replica begins with: everything but its rank.
#[derive(Debug, Clone)]
pub struct Order {
    /// The text of `config.toml`.
    pub text: String,
    /// The bytes of the checkpoint that it goes on from.
    pub from: Option<(Checkpoint, PathBuf)>,
}

impl Devices {
    /// # Errors
    /// If a device is unknown, or the first is not of this process.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let place = |name: &str| match name.trim().strip_prefix("remote:") {
            Some(address) => Ok(Place::There(address.to_owned())),
            None => device::check(name.trim()).map(|()| Place::Here(name.trim().to_owned())),
        };
        let places: Vec<Place> = text.split(',').map(place).collect::<Result<_, _>>()?;
        match &places[0] {
            Place::Here(_) => Ok(Self(places)),
            Place::There(_) => {
                Err(refused("the first device is the run's own: begin with `flex`, for example"))
            }
        }
    }

    /// The run's own device.
    pub fn first(&self) -> &str {
        match &self.0[0] {
            Place::Here(name) | Place::There(name) => name,
        }
    }

    /// Checks that a run can be shared.
    ///
    /// # Errors
    /// Says what stands against it.
    pub fn check(&self, config: &RunConfig) -> Result<(), ConfigError> {
        let size = self.0.len();
        if size == 1 {
            return Ok(());
        }
        let (rows, key) = match &config.algo {
            AlgoConfig::Ppo(ppo) => (ppo.minibatch_rows, "algo.minibatch_rows"),
            AlgoConfig::RewardModel(_) => (config.data.as_ref().map_or(1, |data| data.batch), "data.batch"),
            AlgoConfig::Dpo(dpo) if dpo.loss == PreferenceLoss::KtoPair => {
                return Err(refused("the loss `kto_pair` compares with the whole batch; use one device"));
            }
            AlgoConfig::Dpo(dpo) => {
                let batch = config.data.as_ref().map_or(1, |data| data.batch);
                (batch / dpo.accumulate, "data.batch / algo.accumulate")
            }
            _ => return Err(refused("only `ppo`, `dpo` and `reward_model` share their gradients")),
        };
        if !rows.is_multiple_of(size) {
            return Err(refused(&format!("{size} devices do not divide `{key}` = {rows} evenly")));
        }
        if config.guards().on_alarm == OnAlarm::Rollback {
            return Err(refused("replicas cannot roll back together; take `guards.on_alarm` out"));
        }
        Ok(())
    }

    /// Starts the other replicas, and returns the team that the run leads.
    ///
    /// # Errors
    /// If one cannot be reached or started.
    pub fn muster(&self, order: &Order) -> Result<Team> {
        let size = self.0.len();
        let mut links: Vec<Box<dyn Link>> = vec![];
        for (place, rank) in self.0[1..].iter().zip(1..) {
            links.push(match place {
                Place::There(address) => Box::new(Socket::call(address, rank, size, order)?),
                Place::Here(name) => {
                    let (link, end) = Team::link();
                    let (name, order) = (name.clone(), order.clone());
                    let body = move || {
                        // Whatever ends it closes its link: the run hears of it there.
                        if let Err(error) = follow(&order, &name, Team::following(rank, size, end)) {
                            eprintln!("replica {rank} on {name}: {error:#}");
                        }
                    };
                    thread::Builder::new().name(format!("replica-{rank}")).spawn(body)?;
                    link
                }
            });
        }
        Ok(Team::leading(links))
    }
}

fn refused(what: &str) -> ConfigError {
    ConfigError::Value { key: "--devices".into(), what: what.to_owned() }
}

/// Makes the updates of a run that another replica leads, on the device `name`, until it is over or the leader has gone.
///
/// # Errors
/// If the run cannot be put together, or a number of it is not finite.
pub fn follow(order: &Order, name: &str, team: Team) -> Result<()> {
    let tree = order.text.parse().context("the leader's config is not TOML")?;
    let config = RunConfig::from_tree(tree)?;
    let device = device::choose(name)?.in_team(team.clone());
    assemble(&config, device, Follow { order, team, config: &config })?
}

struct Follow<'a> {
    order: &'a Order,
    team: Team,
    config: &'a RunConfig,
}

impl Job for Follow<'_> {
    type Output = Result<()>;

    fn run<S: Session>(self, mut session: S) -> Result<()> {
        if let Some((checkpoint, path)) = &self.order.from {
            (session, _) = restore(session, checkpoint, path, self.config.algo.name(), &self.order.text)?;
        }
        // The leader is first at the files that both read.
        self.team.meet(session.update())?;
        session.start()?;
        while !self.config.is_over(session.step()) {
            session.advance()?;
        }
        Ok(())
    }
}
