//! Keys and values of the tokens already seen, in memory that is claimed once.

use burn::tensor::{Bool, Tensor};

use super::layers::Rotary;

/// The past of a batch of `R` sequences that grow together, column by column.
#[derive(Debug, Clone)]
pub struct KvCache {
    pub(crate) layers: Vec<LayerCache>,
    /// Angles of all positions there is room for.
    pub(crate) rotary: Option<Rotary>,
    /// Which columns hold tokens, true, and which padding `[R, seen]`.
    pub(crate) real: Option<Tensor<2, Bool>>,
}

impl KvCache {
    /// Columns seen so far.
    pub fn seen(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.seen)
    }
}

/// One block's keys and values, `[R, KV, capacity, d]` each.
#[derive(Debug, Clone)]
pub struct LayerCache {
    k: Option<Tensor<4>>,
    v: Option<Tensor<4>>,
    capacity: usize,
    seen: usize,
}

impl LayerCache {
    /// Room for `capacity` columns, claimed at the first use.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { k: None, v: None, capacity, seen: 0 }
    }

    /// Writes the new columns in place and gives all columns so far.
    ///
    /// # Shapes
    /// `k, v: [R, KV, s, d]` → `[R, KV, seen + s, d]`
    ///
    /// # Panics
    /// If there is no room left.
    pub(crate) fn append(&mut self, k: Tensor<4>, v: Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        let [rows, heads, s, d] = k.dims();
        let end = self.seen + s;
        assert!(end <= self.capacity, "the cache has room for {} columns, not {end}", self.capacity);
        let write = |old: Option<Tensor<4>>, new: Tensor<4>| {
            let like = (&new.device(), new.dtype());
            let all = old.unwrap_or_else(|| Tensor::zeros([rows, heads, self.capacity, d], like));
            // Not shared with anyone, so that burn writes in place.
            all.slice_assign([0..rows, 0..heads, self.seen..end, 0..d], new)
        };
        let (k, v) = (write(self.k.take(), k), write(self.v.take(), v));
        let seen = |t: &Tensor<4>| t.clone().slice([0..rows, 0..heads, 0..end, 0..d]);
        let all = (seen(&k), seen(&v));
        (self.k, self.v, self.seen) = (Some(k), Some(v), end);
        all
    }
}
