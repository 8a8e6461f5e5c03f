//! The reference's log-probs on disk: read again, never for another model or other data, rebuilt when damaged.

use burn::tensor::Device;
use rl_algos::{AlgoError, Origin, PairBatch, ReferenceCache, ReferenceLogProbs, TokenPair};
use rl_models::{Contexts, TablePolicy};

const PAIRS: [TokenPair<'static>; 3] = [
    TokenPair { prompt: &[], chosen: &[1, 2], rejected: &[0] },
    TokenPair { prompt: &[], chosen: &[2], rejected: &[1, 1] },
    TokenPair { prompt: &[], chosen: &[0, 0], rejected: &[0, 0] },
];

fn table(tilt: f32) -> TablePolicy {
    TablePolicy::new(Contexts::bigram(3, 2), &Device::flex(), |past| {
        (0..3).map(|a| tilt * a as f32 + past.len() as f32 * 0.1).collect()
    })
}

fn ask(folder: &std::path::Path, model: &TablePolicy, pairs: &[TokenPair]) -> (ReferenceLogProbs, Origin) {
    let cache = ReferenceCache { folder, model, shape: "table", pad: 0, batch: 2 };
    cache.log_probs(pairs, &Device::flex()).unwrap()
}

#[test]
fn what_was_computed_is_read_again_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let (first, origin) = ask(folder.path(), &table(0.3), &PAIRS);
    let Origin::Computed(path) = origin else { panic!("{origin:?}") };
    assert_eq!(ask(folder.path(), &table(0.3), &PAIRS), (first.clone(), Origin::Read(path.clone())));
    assert_eq!(first.chosen[2], first.rejected[2]);
    for (model, pairs) in [(table(0.4), &PAIRS[..]), (table(0.3), &PAIRS[..2])] {
        let (_, origin) = ask(folder.path(), &model, pairs);
        assert!(matches!(&origin, Origin::Computed(other) if *other != path), "{origin:?}");
    }
}

#[test]
fn the_log_probs_are_those_of_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let (got, _) = ask(folder.path(), &table(0.3), &PAIRS);
    let batch = PairBatch::new(&PAIRS, 0, &Device::flex()).unwrap().with_reference(&table(0.3), 3);
    let want = batch.reference.unwrap();
    assert_eq!(got.chosen, want.chosen.into_data().try_to_vec::<f32>().unwrap());
    assert_eq!(got.rejected, want.rejected.into_data().try_to_vec::<f32>().unwrap());
}

#[test]
fn a_damaged_file_is_computed_again_with_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let (good, origin) = ask(folder.path(), &table(0.3), &PAIRS);
    let Origin::Computed(path) = origin else { panic!("{origin:?}") };
    let whole = std::fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    for damaged in [&whole[..whole.len() / 2], &[], &flipped] {
        std::fs::write(&path, damaged).unwrap();
        let (again, origin) = ask(folder.path(), &table(0.3), &PAIRS);
        assert_eq!(again, good);
        assert!(matches!(&origin, Origin::Rebuilt(_, why) if why.contains("damaged")), "{origin:?}");
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }
}

#[test]
fn a_file_of_another_model_under_this_name_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let (_, origin) = ask(folder.path(), &table(0.4), &PAIRS);
    let Origin::Computed(other) = origin else { panic!("{origin:?}") };
    let (good, origin) = ask(folder.path(), &table(0.3), &PAIRS);
    let Origin::Computed(path) = origin else { panic!("{origin:?}") };
    std::fs::copy(other, path).unwrap();
    let (again, origin) = ask(folder.path(), &table(0.3), &PAIRS);
    assert_eq!(again, good);
    assert!(matches!(&origin, Origin::Rebuilt(_, why) if why.contains("another model")), "{origin:?}");
}

#[test]
fn an_empty_answer_is_named() {
    let pairs = [PAIRS[0], TokenPair { rejected: &[], ..PAIRS[1] }];
    let error = PairBatch::new(&pairs, 0, &Device::flex()).unwrap_err();
    assert_eq!(error, AlgoError::EmptyAnswer { pair: 2, side: "rejected" });
    assert!(error.to_string().contains("pair 2: the rejected answer has no token"), "{error}");
}
