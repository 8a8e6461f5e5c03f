//! The golden vectors of the token world: schema, and every number of a file held against our enumeration.

use rl_envs::token_world::best_of_n::{BestOfN, kl_bound};
use rl_envs::token_world::exact::{self, entropy};
use rl_envs::{TokenWorld, TokenWorldParameters};
use serde::Deserialize;
use serde_json::Value;

/// What the file is called by in the `function` key of its vectors.
pub const FUNCTION: &str =
    "enumerable token world: reference bigram model, gold reward, exact tilted optimum and best-of-n";

#[derive(Deserialize)]
struct File {
    rtol: f64,
    atol: f64,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(flatten)]
    parameters: TokenWorldParameters,
    expected: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    sum_reference_probability: f64,
    reference_entropy_nats: f64,
    gold_raw_mean: f64,
    gold_raw_std: f64,
    sequences: Vec<Sentence>,
    best_sequence: Best,
    tilt: Vec<Tilt>,
    best_of_n: Vec<BestOf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sentence {
    tokens: Vec<usize>,
    reference_log_prob: f64,
    gold: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Best {
    tokens: Vec<usize>,
    gold: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tilt {
    beta: f64,
    log_z: f64,
    kl_to_reference: f64,
    gold: f64,
    objective: f64,
    entropy_nats: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BestOf {
    n: usize,
    gold: f64,
    kl_to_reference: f64,
    kl_formula: f64,
}

/// How many numbers of the file were compared, and a sentence for each that differs.
///
/// # Panics
/// If the file has another schema.
#[must_use]
pub fn check(file: &Value) -> (usize, Vec<String>) {
    let File { rtol, atol, cases } = File::deserialize(file).expect("the schema of the token world");
    let mut tally = Tally { rtol, atol, place: String::new(), compared: 0, faults: vec![] };
    for case in cases {
        tally.place.clone_from(&case.name);
        let world = TokenWorld::new(case.parameters).expect("a world that can be enumerated");
        tally.world(&world, &case.expected);
    }
    (tally.compared, tally.faults)
}

struct Tally {
    rtol: f64,
    atol: f64,
    place: String,
    compared: usize,
    faults: Vec<String>,
}

impl Tally {
    fn hold(&mut self, what: &str, got: f64, want: f64) {
        self.compared += 1;
        let error = (got - want).abs();
        if error.is_nan() || error > self.atol + self.rtol * want.abs() {
            self.faults.push(format!("{}: {what} is {got}, want {want}", self.place));
        }
    }

    fn world(&mut self, world: &TokenWorld, want: &Expected) {
        let (reference, gold) = (world.reference(), world.gold());
        let (mean, std) = world.raw_moments();
        let mass: f64 = reference.iter().map(|l| l.exp()).sum();
        self.hold("the sum of p_ref", mass, want.sum_reference_probability);
        self.hold("the entropy of p_ref", entropy(reference), want.reference_entropy_nats);
        self.hold("the mean of the raw reward", mean, want.gold_raw_mean);
        self.hold("the deviation of the raw reward", std, want.gold_raw_std);
        for sentence in &want.sequences {
            let index = world.index(&sentence.tokens);
            assert_eq!(world.tokens(index), sentence.tokens, "numbering goes both ways");
            self.hold("log p_ref of a sentence", reference[index], sentence.reference_log_prob);
            self.hold("gold of a sentence", gold[index], sentence.gold);
        }
        let highest = gold.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.hold("the highest gold", highest, want.best_sequence.gold);
        self.hold("gold of the best sentence", gold[world.index(&want.best_sequence.tokens)], highest);
        for tilt in &want.tilt {
            let got = exact::tilt(reference, gold, tilt.beta);
            self.hold("log Z", got.log_z, tilt.log_z);
            self.hold("KL of the tilt", got.kl, tilt.kl_to_reference);
            self.hold("gold of the tilt", got.reward, tilt.gold);
            self.hold("objective of the tilt", got.objective(), tilt.objective);
            self.hold("entropy of the tilt", got.entropy, tilt.entropy_nats);
        }
        let best = BestOfN::new(reference, gold);
        for of in &want.best_of_n {
            self.hold("gold of best-of-n", best.expectation(of.n, gold), of.gold);
            self.hold("KL of best-of-n", best.kl(of.n), of.kl_to_reference);
            self.hold("the bound on it", kl_bound(of.n), of.kl_formula);
        }
    }
}
