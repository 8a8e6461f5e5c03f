//! Several replicas of one run that share the work of a gradient: each computes its part, all take the sum.
//!
//! ```text
//! ∇L = 1/k · Σ_r ∇L_r        L_r: the mean over the r-th of k equal shares of a minibatch
//! ```
//!
//! A replica is the whole run: same seed, same data, same optimiser. Only the gradient is divided, and what comes back is
//! the same bits on all of them, so they stay equal without ever exchanging parameters. The sum is made in one place, in
//! double precision and in order of rank: no order of arrival can change it.
//!
//! What carries the numbers is a [`Link`], a pair of "send" and "receive": channels between threads here, sockets between
//! processes in `rl-train`. burn's own collectives know neither (docs/adr/0012-replicas.md).

use std::fmt::Debug;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{Tensor, TensorData};

use crate::error::UpdateError;

/// A way to one other replica and back.
pub trait Link: Debug + Send {
    /// Sends `numbers`.
    ///
    /// # Errors
    /// If the other side has gone.
    fn send(&mut self, numbers: &[f32]) -> io::Result<()>;

    /// Receives as many numbers as `numbers` holds.
    ///
    /// # Errors
    /// If the other side has gone or sends another count.
    fn receive(&mut self, numbers: &mut [f32]) -> io::Result<()>;
}

/// A replica's place among the others. By default it is alone, and sums are what they are of one.
#[derive(Debug, Clone, Default)]
pub struct Team(Option<Arc<Place>>);

#[derive(Debug)]
struct Place {
    rank: usize,
    size: usize,
    /// Rank 0 has a link to each of the others, in order; they have one to it.
    links: Mutex<Vec<Box<dyn Link>>>,
}

impl Team {
    /// Rank 0 of a team with those behind `links`, whose ranks are 1, 2, …
    pub fn leading(links: Vec<Box<dyn Link>>) -> Self {
        let size = links.len() + 1;
        if size == 1 { Self::default() } else { Self::at(0, size, links) }
    }

    /// Rank `rank` of a team of `size`, behind whose `link` is rank 0.
    ///
    /// # Panics
    /// Unless 1 ≤ rank < size.
    pub fn following(rank: usize, size: usize, link: Box<dyn Link>) -> Self {
        assert!((1..size).contains(&rank), "rank {rank} follows nobody in a team of {size}");
        Self::at(rank, size, vec![link])
    }

    /// A team of `size` threads of one process, in order of rank.
    pub fn of_threads(size: usize) -> Vec<Self> {
        let (links, ends): (Vec<_>, Vec<_>) = (1..size).map(|_| Self::link()).unzip();
        let leader = Self::leading(links);
        let followers = ends.into_iter().zip(1..).map(|(end, rank)| Self::following(rank, size, end));
        std::iter::once(leader).chain(followers).collect()
    }

    fn at(rank: usize, size: usize, links: Vec<Box<dyn Link>>) -> Self {
        Self(Some(Arc::new(Place { rank, size, links: Mutex::new(links) })))
    }

    /// How many replicas there are.
    pub fn size(&self) -> usize {
        self.0.as_ref().map_or(1, |place| place.size)
    }

    /// The rows of a minibatch of `rows` that are this replica's; `None` for all of them.
    ///
    /// # Panics
    /// If they cannot be divided evenly.
    pub fn share(&self, rows: usize) -> Option<Vec<usize>> {
        let place = self.0.as_ref()?;
        assert!(rows.is_multiple_of(place.size), "{rows} rows are not divided among {} replicas", place.size);
        let each = rows / place.size;
        Some((place.rank * each..(place.rank + 1) * each).collect())
    }

    /// Means over the replicas of a gradient `[P]` and of the scalars beside it, the same bits on each.
    ///
    /// # Errors
    /// [`UpdateError::Team`] if a replica has gone.
    pub fn mean<const K: usize>(
        &self,
        grad: Tensor<1>,
        scalars: [Tensor<1>; K],
        update: u64,
    ) -> Result<(Tensor<1>, [Tensor<1>; K]), UpdateError> {
        let Some(place) = &self.0 else { return Ok((grad, scalars)) };
        let (device, parameters) = (grad.device(), grad.dims()[0]);
        let all = Tensor::cat(std::iter::once(grad).chain(scalars).collect(), 0);
        let mut numbers: Vec<f32> = all.into_data().try_into_vec_as().expect("floats convert to f32");
        place.mean(&mut numbers).map_err(|what| UpdateError::Team { what, update })?;
        let n = numbers.len();
        let all: Tensor<1> = Tensor::from_data(TensorData::new(numbers, [n]), &device);
        let scalar = |k| all.clone().narrow(0, parameters + k, 1);
        Ok((all.clone().narrow(0, 0, parameters), std::array::from_fn(scalar)))
    }

    /// Waits until every replica is here.
    ///
    /// # Errors
    /// [`UpdateError::Team`] if one has gone.
    pub fn meet(&self, update: u64) -> Result<(), UpdateError> {
        let Some(place) = &self.0 else { return Ok(()) };
        place.mean(&mut [0.0]).map_err(|what| UpdateError::Team { what, update })
    }
}

impl Place {
    /// `numbers` become their means over the replicas.
    fn mean(&self, numbers: &mut [f32]) -> Result<(), String> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = |rank: usize| move |error: io::Error| format!("replica {rank} of {}: {error}", self.size);
        if self.rank > 0 {
            links[0].send(numbers).map_err(gone(0))?;
            return links[0].receive(numbers).map_err(gone(0));
        }
        let mut sums: Vec<f64> = numbers.iter().map(|x| f64::from(*x)).collect();
        for (link, rank) in links.iter_mut().zip(1..) {
            link.receive(numbers).map_err(gone(rank))?;
            sums.iter_mut().zip(numbers.iter()).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        numbers.iter_mut().zip(&sums).for_each(|(x, sum)| *x = (sum / self.size as f64) as f32);
        links.iter_mut().zip(1..).try_for_each(|(link, rank)| link.send(numbers).map_err(gone(rank)))
    }
}

impl Team {
    /// The two ends of a link between threads of one process.
    pub fn link() -> (Box<dyn Link>, Box<dyn Link>) {
        let ((there, here), (back, home)) = (channel(), channel());
        (Box::new(Channel { to: there, from: home }), Box::new(Channel { to: back, from: here }))
    }
}

#[derive(Debug)]
struct Channel {
    to: Sender<Vec<f32>>,
    from: Receiver<Vec<f32>>,
}

impl Link for Channel {
    fn send(&mut self, numbers: &[f32]) -> io::Result<()> {
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "its thread has ended");
        self.to.send(numbers.to_vec()).map_err(gone)
    }

    fn receive(&mut self, numbers: &mut [f32]) -> io::Result<()> {
        let gone = |_| io::Error::new(io::ErrorKind::UnexpectedEof, "its thread has ended");
        let got = self.from.recv().map_err(gone)?;
        if got.len() != numbers.len() {
            let text = format!("it sent {} numbers instead of {}", got.len(), numbers.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        numbers.copy_from_slice(&got);
        Ok(())
    }
}
