//! The decoder: embedding, blocks, norm, logits.

use burn::module::{Module, Param};
use burn::tensor::{Bool, Device, Int, Tensor};
use rand::Rng;
use rl_core::dist::Categorical;

use super::cache::{KvCache, LayerCache};
use super::config::{LmConfig, Positions};
use super::layers::{Block, Dropout, Norm, Rotary, normal};
use crate::tokens::Tokens;
use crate::traits::{Policy, Rows};

/// A causal language model π_θ(token | tokens before).
#[derive(Module, Debug)]
pub struct Transformer {
    /// A vector per token `[V, D]`.
    pub embedding: Param<Tensor<2>>,
    /// A vector per position `[max_positions, D]`, where positions are learned.
    pub positions: Option<Param<Tensor<2>>>,
    /// The blocks, in order.
    pub blocks: Vec<Block>,
    /// Before the logits.
    pub norm: Norm,
    /// The output layer `[V, D]`; without one it is the embedding.
    pub head: Option<Param<Tensor<2>>>,
    /// Chance of zeroing a number in training passes.
    dropout: f64,
    #[module(skip)]
    config: LmConfig,
}

impl Transformer {
    /// A model from scratch: weights from `Normal(0, 0.02)`, zero biases.
    ///
    /// # Panics
    /// If `config` does not pass [`LmConfig::validate`].
    pub fn new<R: Rng + ?Sized>(config: LmConfig, rng: &mut R, device: &Device) -> Self {
        config.validate().unwrap_or_else(|error| panic!("{error}"));
        let table = |rows, rng: &mut R| Param::from_tensor(normal([rows, config.hidden], rng, device));
        let learned = config.positions == Positions::Learned;
        Self {
            embedding: table(config.vocabulary, rng),
            positions: learned.then(|| table(config.max_positions, rng)),
            blocks: (0..config.layers).map(|_| Block::new(&config, rng, device)).collect(),
            norm: Norm::new(&config, device),
            head: (!config.tied).then(|| table(config.vocabulary, rng)),
            dropout: 0.0,
            config,
        }
    }

    /// A model of given parts.
    pub(crate) fn from_parts(
        embedding: Param<Tensor<2>>,
        positions: Option<Param<Tensor<2>>>,
        blocks: Vec<Block>,
        norm: Norm,
        head: Option<Param<Tensor<2>>>,
        config: LmConfig,
    ) -> Self {
        Self { embedding, positions, blocks, norm, head, dropout: 0.0, config }
    }

    /// The same model, whose training passes zero a number with probability `p` where GPT-2 does: after the embedding,
    /// and in what attention and feed-forward add to the stream.   Srivastava et al. 2014, inverted
    ///
    /// # Panics
    /// Unless `p` is in [0, 1).
    #[must_use]
    pub fn with_dropout(self, p: f64) -> Self {
        assert!((0.0..1.0).contains(&p), "a dropout of {p}");
        Self { dropout: p, ..self }
    }

    /// Its shape.
    pub fn config(&self) -> &LmConfig {
        &self.config
    }

    /// An empty past with room for `capacity` columns.
    ///
    /// # Panics
    /// If the model cannot look back that far.
    pub fn cache(&self, capacity: usize) -> KvCache {
        self.assert_in_sight(capacity);
        KvCache {
            layers: self.blocks.iter().map(|_| LayerCache::new(capacity)).collect(),
            rotary: self.rotary(capacity),
            real: None,
        }
    }

    /// The stream after the last block and its norm, at every column.
    ///
    /// # Shapes
    /// `ids, real: [R, S]` → `[R, S, D]`; a column sees itself and the real columns before it
    ///
    /// # Panics
    /// If there are more columns than the model can look back on.
    pub fn hidden(&self, ids: &Tensor<2, Int>, real: &Tensor<2, Bool>) -> Tensor<3> {
        let columns = ids.dims()[1];
        self.assert_in_sight(columns);
        self.stream(ids, real, self.rotary(columns).as_ref(), None, &mut Dropout::off())
    }

    /// [`Transformer::hidden`] of new columns after those in `cache`, which then holds them too.
    pub fn hidden_after(
        &self,
        ids: &Tensor<2, Int>,
        real: &Tensor<2, Bool>,
        cache: &mut KvCache,
    ) -> Tensor<3> {
        let all = match cache.real.take() {
            Some(before) => Tensor::cat(vec![before, real.clone()], 1),
            None => real.clone(),
        };
        let rotary = cache.rotary.clone();
        let stream = self.stream(ids, &all, rotary.as_ref(), Some(&mut cache.layers), &mut Dropout::off());
        cache.real = Some(all);
        stream
    }

    /// The logits of states.
    ///
    /// # Shapes
    /// `hidden: [N, D]` → `[N, V]`
    pub fn logits(&self, hidden: Tensor<2>) -> Tensor<2> {
        let head = self.head.as_ref().unwrap_or(&self.embedding);
        hidden.matmul(head.val().transpose())
    }

    /// The state of each row's last real token, wherever its padding is.
    ///
    /// # Shapes
    /// `ids, real: [R, S]` → `[R, D]`
    pub fn last_states(&self, ids: &Tensor<2, Int>, real: &Tensor<2, Bool>) -> Tensor<2> {
        let ([rows, s], d) = (ids.dims(), self.config.hidden);
        let count = real.clone().int().cumsum(1);
        let all = count.clone().narrow(1, s - 1, 1).expand([rows, s]);
        let last = count.equal(all).bool_and(real.clone());
        let others = last.bool_not().unsqueeze_dim::<3>(2).expand([rows, s, d]);
        self.hidden(ids, real).mask_fill(others, 0.0).sum_dim(1).reshape([rows, d])
    }

    /// The states of the `R·L` decisions of a batch: the column before each response token.
    ///
    /// # Shapes
    /// → `[R·L, D]`
    ///
    /// # Panics
    /// If the prompts are empty: the first decision needs a token before it.
    pub fn decision_states(&self, tokens: &Tokens) -> Tensor<2> {
        self.states_before_response(tokens, &mut Dropout::off())
    }

    /// [`Transformer::decision_states`] as training sees them: with dropout masks drawn from `noise`.
    pub fn decision_states_in_training(&self, tokens: &Tokens, noise: &mut dyn Rng) -> Tensor<2> {
        self.states_before_response(tokens, &mut Dropout::new(self.dropout, noise))
    }

    fn states_before_response(&self, tokens: &Tokens, dropout: &mut Dropout) -> Tensor<2> {
        assert!(tokens.prompt > 0, "a language model needs a token before the response; begin with BOS");
        let (rows, l) = (tokens.rows(), tokens.response());
        let columns = tokens.prompt + l - 1;
        self.assert_in_sight(columns);
        let (ids, real) =
            (tokens.ids.clone().narrow(1, 0, columns), tokens.real.clone().narrow(1, 0, columns));
        let stream = self.stream(&ids, &real, self.rotary(columns).as_ref(), None, dropout);
        stream.narrow(1, tokens.prompt - 1, l).reshape([rows * l, self.config.hidden])
    }

    /// `real` covers all columns, of which the last `S` are new.
    fn stream(
        &self,
        ids: &Tensor<2, Int>,
        real: &Tensor<2, Bool>,
        rotary: Option<&Rotary>,
        mut caches: Option<&mut Vec<LayerCache>>,
        dropout: &mut Dropout,
    ) -> Tensor<3> {
        let ([rows, s], t) = (ids.dims(), real.dims()[1]);
        // A token's place is the number of tokens before it: padding takes none.
        let places = (real.clone().int().cumsum(1) - 1).clamp_min(0).narrow(1, t - s, s);
        let out_of_sight = out_of_sight(real, s);
        let angles = rotary.map(|rotary| rotary.at(places.clone()));
        let look_up = |table: &Param<Tensor<2>>, at: Tensor<2, Int>| {
            table.val().select(0, at.reshape([rows * s])).reshape([rows, s, self.config.hidden])
        };
        let mut x: Tensor<3> = look_up(&self.embedding, ids.clone());
        if let Some(positions) = &self.positions {
            x = x + look_up(positions, places);
        }
        x = dropout.apply(x);
        for (i, block) in self.blocks.iter().enumerate() {
            let cache = caches.as_mut().map(|caches| &mut caches[i]);
            x = block.forward(x, angles.as_ref(), &out_of_sight, cache, dropout);
        }
        self.norm.forward(x)
    }

    fn rotary(&self, positions: usize) -> Option<Rotary> {
        let Positions::Rotary { base, scaling } = self.config.positions else { return None };
        let embedding = self.embedding.val();
        let device = embedding.clone().inner().device();
        Some(Rotary::new(positions, self.config.head_dim, (base, scaling), embedding.dtype(), &device))
    }

    fn assert_in_sight(&self, columns: usize) {
        let most = self.config.max_positions;
        assert!(columns <= most, "{columns} columns, but the model can look back on {most} tokens");
    }
}

/// Which of `T` columns each of the last `S` must not see: later ones and padding, but never itself.
///
/// # Shapes
/// `real: [R, T]` → `[R, S, T]`
fn out_of_sight(real: &Tensor<2, Bool>, s: usize) -> Tensor<3, Bool> {
    let ([rows, t], device) = (real.dims(), real.device());
    let columns = |from: usize, to: usize| Tensor::<1, Int>::arange(from as i64..to as i64, &device);
    let queries: Tensor<2, Int> = columns(t - s, t).unsqueeze_dim::<2>(1).expand([s, t]);
    let keys: Tensor<2, Int> = columns(0, t).unsqueeze_dim::<2>(0).expand([s, t]);
    let later: Tensor<3, Bool> =
        keys.clone().greater(queries.clone()).unsqueeze_dim::<3>(0).expand([rows, s, t]);
    let other: Tensor<3, Bool> = keys.not_equal(queries).unsqueeze_dim::<3>(0).expand([rows, s, t]);
    let padding: Tensor<3, Bool> = real.clone().bool_not().unsqueeze_dim::<3>(1).expand([rows, s, t]);
    later.bool_or(padding.bool_and(other))
}

/// The laws of the response's tokens.
impl Policy for Transformer {
    type Obs = Tokens;
    type Dist = Categorical;

    fn policy(&self, tokens: &Tokens) -> Categorical {
        Categorical::new(self.logits(self.decision_states(tokens)))
    }

    fn policy_in_training(&self, tokens: &Tokens, noise: &mut dyn Rng) -> Categorical {
        Categorical::new(self.logits(self.decision_states_in_training(tokens, noise)))
    }
}
