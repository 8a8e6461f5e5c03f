//! RLHF is PPO on the token MDP: stepping [`TokenMdp`] as an environment and sampling whole responses are one process.

use std::sync::Arc;

use burn::module::{Module, ModuleDisplay};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_algos::{EnvCollector, LmRolloutConfig};
use rl_core::dist::{Categorical, Distribution};
use rl_core::kl_control::KlController;
use rl_envs::token_world::fixed;
use rl_envs::{TokenMdp, VecEnv, env_rng};
use rl_models::flat_params::{flatten, unflatten};
use rl_models::{ActorCritic, Policy, Response, Tokens};
use rl_tests::numbers;
use rl_tests::token_lesson::{Tables, TokenLesson};

/// A language model that sees one prefix at a time: the observation of [`TokenMdp`].
#[derive(Module, Debug)]
struct ByPrefix<M: Module + ModuleDisplay> {
    model: M,
}

impl ByPrefix<Tables> {
    /// The observations as responses, and the decision of each that is due.
    fn read(obs: &Tensor<2>) -> (Tokens, Tensor<1, Int>) {
        let [rows, length] = obs.dims();
        let entries = numbers(obs.clone());
        let due = entries
            .chunks(length)
            .enumerate()
            .map(|(r, row)| (r * length + row.iter().take_while(|&&token| token >= 0.0).count()) as i64);
        let due: Vec<i64> = due.collect();
        let responses: Vec<Vec<u32>> = entries
            .chunks(length)
            .map(|row| row.iter().map(|&token| token.max(0.0) as u32).collect())
            .collect();
        let pairs: Vec<(&[u32], &[u32])> = responses.iter().map(|y| (&[][..], y.as_slice())).collect();
        let index = Tensor::from_data(TensorData::new(due, [rows]), &obs.device());
        (Tokens::new(&pairs, 0, &obs.device()), index)
    }
}

impl ActorCritic for ByPrefix<Tables> {
    type Obs = Tensor<2>;
    type Dist = Categorical;

    fn policy(&self, obs: &Tensor<2>) -> Categorical {
        let (tokens, due) = Self::read(obs);
        Categorical::new(ActorCritic::policy(&self.model, &tokens).params().select(0, due))
    }

    fn value(&self, obs: &Tensor<2>) -> Tensor<1> {
        let (tokens, due) = Self::read(obs);
        self.model.value(&tokens).select(0, due)
    }

    fn gradient(
        &self,
        _: &Tensor<2>,
        _: &mut dyn Rng,
        _: impl FnOnce(Categorical) -> Tensor<1>,
        _: impl FnOnce(Tensor<1>) -> Tensor<1>,
    ) -> Tensor<1> {
        unreachable!("nothing is trained here")
    }
}

#[test]
fn stepping_the_mdp_and_sampling_responses_give_equal_rollouts() {
    let (beta, lambda, temperature) = (0.3, 0.95, 0.7);
    let lesson = TokenLesson::exact(fixed::small());
    // Away from the reference, with a critic that has opinions.
    let start = lesson.tables(temperature);
    let theta = numbers(flatten(&start));
    let moved: Vec<f32> =
        theta.iter().enumerate().map(|(i, x)| (x + (i as f64 * 1.7).sin() * 0.4) as f32).collect();
    let model = unflatten(start, &Tensor::from_data(moved.as_slice(), &Device::flex()));

    let config = LmRolloutConfig { prompts: 32, kl: KlController::fixed(beta), ..LmRolloutConfig::default() };
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let sequence_seed: u64 = rng.clone().random();
    // The reference as the MDP has it: at temperature 1.
    let reference = lesson.reference();
    let responses = lesson.collector(&config).collect(
        &model,
        |model: &Tables, tokens| ActorCritic::policy(model, tokens),
        |tokens| reference.policy(tokens),
        |_, written: &[Response]| lesson.score(written),
        &mut rng,
    );
    let values: Vec<f32> = numbers(model.value(&responses.tokens)).iter().map(|&v| v as f32).collect();
    let whole = responses.with_critic(&values, 1.0, lambda);
    let whole_rewards: Vec<f64> =
        responses.rewards().into_iter().flat_map(|shaped| shaped.rewards).map(f64::from).collect();

    // π_old at every prefix, at its temperature.
    let length = lesson.world.length();
    let behaviour: Arc<[f64]> = model.model.policy.next_token_laws(temperature).into();
    let by_prefix = ByPrefix { model: model.clone() };
    for sequence in 0..responses.rows() {
        let mdp = TokenMdp::new(lesson.world.clone(), lesson.reward.clone(), behaviour.clone(), beta);
        let envs = VecEnv::new(vec![mdp], 0);
        let mut collector = EnvCollector::new(envs, length, 1.0, lambda, &Device::flex());
        let (stepped, episodes) = collector.collect(&by_prefix, &mut env_rng(sequence_seed, sequence as u64));
        let row = sequence * length..(sequence + 1) * length;
        assert_eq!(
            Categorical::elems(&stepped.actions),
            Categorical::elems(&whole.actions)[row.clone()],
            "sequence {sequence}: one generator, one sentence"
        );
        for (what, stepped, whole) in [
            ("log-probabilities", &stepped.log_prob_old, &whole.log_prob_old),
            ("values", &stepped.value_old, &whole.value_old),
            ("advantages", &stepped.advantage, &whole.advantage),
            ("value targets", &stepped.value_target, &whole.value_target),
        ] {
            let (stepped, whole) = (numbers(stepped.clone()), &numbers(whole.clone())[row.clone()]);
            let close = stepped.iter().zip(whole).all(|(a, b)| (a - b).abs() < 2e-5);
            assert!(close, "sequence {sequence}, {what}: stepped {stepped:?}, whole {whole:?}");
        }
        let total: f64 = whole_rewards[row].iter().sum();
        assert!((episodes.0[0].return_sum - total).abs() < 2e-5, "sequence {sequence}: the returns agree");
    }
}

/// R6: at T = .7 with nothing learnt the ratio is 1 and the KL to itself 0.
#[test]
fn at_a_temperature_policy_and_reference_still_agree() {
    let lesson = TokenLesson::exact(fixed::small());
    let (model, mut rng) = (lesson.tables(0.7), ChaCha8Rng::seed_from_u64(1));
    let reference = rl_models::Tempered::new(lesson.reference(), 0.7);
    let responses = lesson.collector(&LmRolloutConfig::default()).collect(
        &model,
        |model: &Tables, tokens| ActorCritic::policy(model, tokens),
        |tokens| Policy::policy(&reference, tokens),
        |_, written: &[Response]| lesson.score(written),
        &mut rng,
    );
    assert!(responses.kl.iter().all(|kl| kl.abs() < 1e-6));
    assert_eq!(responses.log_prob, responses.log_prob_ref);
    let sampled: Vec<f32> = responses.written.iter().flat_map(|y| y.log_probs.clone()).collect();
    let gap = sampled.iter().zip(&responses.log_prob).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(gap < 1e-5, "what was sampled is what is scored: {gap}");
}
