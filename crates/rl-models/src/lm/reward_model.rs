//! A language model's trunk with one number at the end of a text: what a reward model is.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand::Rng;
use rand_distr::{Distribution, Normal};

use super::transformer::Transformer;
use crate::flat_params::autodiff_gradient;
use crate::tokens::Tokens;

/// `r_φ(x, y) = w·h_φ(last token)`, indifferent to padding on either side.
///
/// ```
/// use burn::tensor::Device;
/// use rand::SeedableRng;
/// use rand_chacha::ChaCha8Rng;
/// use rl_models::lm::{LmConfig, RewardModel, Transformer};
///
/// let device = Device::flex();
/// let mut rng = ChaCha8Rng::seed_from_u64(1);
/// let model = Transformer::new(LmConfig::llama(32, 16, 1, 2, 1), &mut rng, &device);
/// let judge = RewardModel::with_random_head(model, &mut rng);
/// let answers: [(&[u32], &[u32]); 3] = [(&[1, 5], &[7, 2]), (&[1, 5], &[8]), (&[1], &[9, 9, 9])];
/// let judge = judge.clone().normalised_on(&judge.scores(&answers, 2));
/// let mean = judge.scores(&answers, 3).iter().sum::<f64>() / 3.0;
/// assert!(mean.abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
pub struct RewardModel {
    /// Prompt and answer to states.
    pub trunk: Transformer,
    /// State to score `[1, D]`.
    pub head: Param<Tensor<2>>,
    /// Taken off every score, and its divisor: see [`RewardModel::normalised_on`].
    mean: f64,
    std: f64,
}

impl RewardModel {
    /// A reward model that scores everything 0, on a trunk that knows the language.
    pub fn new(trunk: Transformer) -> Self {
        let device: Device = trunk.embedding.val().device();
        let head = Param::from_tensor(Tensor::zeros([1, trunk.config().hidden], &device));
        Self { trunk, head, mean: 0.0, std: 1.0 }
    }

    /// A reward model whose head is drawn from `Normal(0, 1/√(D + 1))`: unlike a head of zeros it teaches the trunk from
    /// the first step on.   Stiennon 2020, appendix B.1
    pub fn with_random_head<R: Rng + ?Sized>(trunk: Transformer, rng: &mut R) -> Self {
        let (device, d): (Device, usize) = (trunk.embedding.val().device(), trunk.config().hidden);
        let normal = Normal::new(0.0, 1.0 / ((d + 1) as f64).sqrt()).expect("a width gives a deviation");
        let head: Vec<f32> = (0..d).map(|_| normal.sample(rng) as f32).collect();
        Self::from_parts(trunk, Tensor::from_data(TensorData::new(head, [1, d]), &device))
    }

    /// A reward model of given parts.
    ///
    /// # Panics
    /// Unless `head` is one row of the trunk's width.
    pub fn from_parts(trunk: Transformer, head: Tensor<2>) -> Self {
        assert_eq!(head.dims(), [1, trunk.config().hidden], "one score per text");
        Self { trunk, head: Param::from_tensor(head), mean: 0.0, std: 1.0 }
    }

    /// `r_φ` of each row, without recording for autodiff.
    ///
    /// # Shapes
    /// `R` rows → `[R]`
    pub fn score(&self, tokens: &Tokens) -> Tensor<1> {
        let states = self.trunk.last_states(&tokens.ids, &tokens.real);
        let rows = states.dims()[0];
        (states.matmul(self.head.val().transpose()).reshape([rows]) - self.mean) / self.std
    }

    /// ∇_φ loss(r_φ(tokens)), flat `[P]` on the plain device.
    pub fn gradient(&self, tokens: &Tokens, loss: impl FnOnce(Tensor<1>) -> Tensor<1>) -> Tensor<1> {
        autodiff_gradient(self, |tracked| loss(tracked.score(tokens)))
    }

    /// The same order of texts, with mean 0 and standard deviation 1 over `scores` of the reference policy's answers:
    /// then β has the same meaning for every reward model.   Ziegler 2019, §2.1; Stiennon 2020, §3.4
    ///
    /// # Panics
    /// If there are fewer than two scores, or all are equal.
    #[must_use]
    pub fn normalised_on(self, scores: &[f64]) -> Self {
        let n = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / n;
        let std = (scores.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        assert!(std > 0.0 && std.is_finite(), "{n} scores with standard deviation {std} normalise nothing");
        Self { mean: self.mean + self.std * mean, std: self.std * std, ..self }
    }

    /// The same model with this taken off every score, and this as its divisor.
    #[must_use]
    pub fn with_normalisation(self, mean: f64, std: f64) -> Self {
        Self { mean, std, ..self }
    }

    /// [`RewardModel::score`] of prompts and answers, `rows` at a time.
    ///
    /// # Panics
    /// If `rows` is 0.
    pub fn scores(&self, texts: &[(&[u32], &[u32])], rows: usize) -> Vec<f64> {
        let (pad, device) = (self.trunk.config().pad, self.head.val().device());
        let some = |texts: &[(&[u32], &[u32])]| -> Vec<f64> {
            let scores = self.score(&Tokens::new(texts, pad, &device));
            scores.into_data().try_into_vec_as().expect("floats convert to f64")
        };
        texts.chunks(rows).flat_map(some).collect()
    }

    /// What is taken off, and what it is divided by: part of the model, to be saved with it.
    pub fn normalisation(&self) -> (f64, f64) {
        (self.mean, self.std)
    }
}
