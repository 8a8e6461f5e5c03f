//! A reward model's folder gives the same model again, normalisation included.

use burn::tensor::Device;
use rl_models::Tokens;
use rl_models::lm::{FloatFormat, RewardModel};
use rl_tests::numbers;

use crate::case::golden;

#[test]
fn a_saved_reward_model_scores_as_before() {
    let device = Device::flex();
    let model = RewardModel::load(&golden().join("hf/llama_reward"), &device).expect("the vectors have one");
    let tokens = Tokens::new(&[(&[1, 2], &[30, 40, 50]), (&[7], &[8])], 0, &device);
    assert_eq!(model.normalisation(), (0.0, 1.0));
    let normal = model.clone().normalised_on(&[1.0, 2.0, 4.0]);
    let folder = tempfile::tempdir().expect("a scratch folder");
    for model in [model, normal] {
        model.save(folder.path(), FloatFormat::F32).expect("the folder can be written");
        let again = RewardModel::load(folder.path(), &device).expect("it was just written");
        assert_eq!(again.normalisation(), model.normalisation());
        assert_eq!(numbers(again.score(&tokens)), numbers(model.score(&tokens)));
        let alone = again.scores(&[(&[1, 2], &[30, 40, 50]), (&[7], &[8])], 1);
        let together = numbers(model.score(&tokens));
        assert!(alone.iter().zip(together).all(|(a, b)| (a - b).abs() < 1e-4), "{alone:?}");
    }
    let config = std::fs::read_to_string(folder.path().join("config.json")).expect("it is there");
    assert!(
        config.contains("LlamaForSequenceClassification") && config.contains("\"num_labels\": 1"),
        "{config}"
    );
}
