//! The two worlds that all published numbers speak of, those of the golden vectors: 8⁶ and 4⁴ sentences.

use super::{TokenWorld, TokenWorldParameters};

/// 8 tokens, sentences of 6: 262,144 of them. Best gold 2.90; the unigram proxy is cheated here.
pub fn full() -> TokenWorld {
    enumerated(TokenWorldParameters {
        vocabulary: 8,
        length: 6,
        reference_initial_logits: vec![
            -0.233234, -0.73685, -1.257382, 0.045902, -0.410461, -0.162966, 0.031903, 0.471743,
        ],
        reference_bigram_logits: vec![
            vec![-0.525172, 0.477784, -0.381094, -0.7496, 1.855824, -0.078877, -0.708913, 0.893477],
            vec![-1.387401, -0.819316, 0.439359, -0.289654, 0.163373, 2.120477, 1.122353, -1.819672],
            vec![-0.595955, -0.599198, -0.133741, -0.663467, -1.483161, 0.691693, 0.418305, 1.047004],
            vec![-2.595195, 0.181332, -0.495811, 0.221302, -0.397885, -1.669024, 1.260879, 0.593142],
            vec![0.071458, 0.651593, -0.346899, -0.976666, -0.802652, 0.334838, 1.434789, 0.022529],
            vec![-0.4525, -0.005668, 0.617652, 0.913497, -1.21799, -0.341368, 0.343004, -0.0655],
            vec![1.006122, 0.164364, -0.724169, -0.488692, -0.735561, 0.593758, 0.066216, -1.156756],
            vec![0.794205, -1.69763, -1.85317, 0.281231, 0.300828, 1.205599, -0.578624, 0.270698],
        ],
        gold_token_weight: vec![
            2.665005, 0.194376, 0.318963, -0.451749, 0.687201, 0.443134, 0.295229, -1.089358,
        ],
        gold_bigram_taste: vec![
            vec![-0.23168, 0.165161, 0.466489, -0.111342, 0.404216, -0.471423, -0.09828, 0.181924],
            vec![0.072974, 0.791257, -0.102667, -0.092581, -0.952808, -0.168965, -0.197375, 0.30217],
            vec![-0.118776, 0.001875, 0.713877, -0.012409, -0.531669, 0.039125, -0.310955, -0.118748],
            vec![-0.385968, -0.044516, -0.42179, 0.220509, 0.191496, -0.215372, -0.396566, 0.209773],
            vec![-0.22199, 0.589538, 0.154927, 0.656064, 0.285368, 0.114649, 0.174957, 0.009586],
            vec![-0.008568, -0.053548, 0.175333, 0.329833, -0.483396, 0.702762, 0.200757, -0.415],
            vec![-0.031271, 0.267685, -0.151868, 0.19535, -0.069383, -0.024861, -0.080167, 0.081487],
            vec![-0.197422, -0.818298, -0.2849, -0.038995, 0.460494, 0.004898, 0.380799, -0.54887],
        ],
        gold_repeat_penalty: 0.8,
    })
}

/// 4 tokens, sentences of 4: 256 of them, for tests that train until nothing is left to learn.
pub fn small() -> TokenWorld {
    enumerated(TokenWorldParameters {
        vocabulary: 4,
        length: 4,
        reference_initial_logits: vec![-0.468045, -0.537762, 0.276951, -0.440993],
        reference_bigram_logits: vec![
            vec![0.821763, 1.042267, 0.84623, -0.646557],
            vec![0.136607, 0.539993, 0.907613, -0.846978],
            vec![0.980261, -1.350827, -1.382147, 0.335992],
            vec![0.770533, -0.887174, 0.2538, -0.309555],
        ],
        gold_token_weight: vec![0.402676, -0.733927, -0.857829, -0.26602],
        gold_bigram_taste: vec![
            vec![0.058613, 0.469241, 0.825058, -0.028503],
            vec![0.0277, -0.162817, -0.019463, -0.569273],
            vec![0.289804, -0.074101, 0.32271, 0.373294],
            vec![0.126833, 0.095547, 0.369322, 0.808153],
        ],
        gold_repeat_penalty: 0.8,
    })
}

fn enumerated(parameters: TokenWorldParameters) -> TokenWorld {
    TokenWorld::new(parameters).expect("the fixed worlds are small")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token_world::exact::entropy;

    #[test]
    fn the_fixed_worlds_are_those_of_the_golden_vectors() {
        let (full, small) = (full(), small());
        assert_eq!((full.sentences(), small.sentences()), (262_144, 256));
        assert!((entropy(full.reference()) - 10.770860288338).abs() < 1e-9);
        assert!((entropy(small.reference()) - 4.837401164020).abs() < 1e-9);
        assert!((full.raw_moments().0 - 1.925144311072).abs() < 1e-9);
        assert!((small.raw_moments().1 - 1.026317380882).abs() < 1e-9);
    }
}
