//! The true reward of a story: how its sentences feel.

/// Words with a feeling, and how much of it.
pub const VALENCE: [(&str, f64); 31] = [
    ("wonderful", 1.0),
    ("happy", 1.0),
    ("laughed", 0.8),
    ("danced", 0.8),
    ("glad", 0.8),
    ("hug", 0.8),
    ("proud", 0.7),
    ("smiled", 0.6),
    ("shared", 0.6),
    ("thanked", 0.6),
    ("helped", 0.6),
    ("kind", 0.6),
    ("friends", 0.6),
    ("gift", 0.5),
    ("good", 0.5),
    ("played", 0.4),
    ("fine", 0.4),
    ("found", 0.3),
    ("tired", -0.3),
    ("lost", -0.5),
    ("broke", -0.5),
    ("away", -0.3),
    ("never", -0.6),
    ("bad", -0.5),
    ("alone", -0.6),
    ("afraid", -0.7),
    ("fight", -0.8),
    ("angry", -0.8),
    ("hurt", -0.8),
    ("sad", -1.0),
    ("terrible", -1.0),
];

/// The true reward, in [−1, 1]: the mean over sentences of the clipped sum of their words' valences.
///
/// A sentence with `not` means the opposite of its other words, with half the force. A feeling that is said
/// again in the same sentence beyond ±1 counts for nothing, and a sentence without any is 0, so no text wins by length.
pub fn sentiment(text: &str) -> f64 {
    let mut sentences = 0usize;
    let mut sum = 0.0;
    for sentence in text.split(['.', '!', '?', '\n']) {
        let words = || sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        if words().next().is_none() {
            continue;
        }
        let valence = |word: &str| {
            let word = word.to_lowercase();
            VALENCE.iter().find(|(known, _)| *known == word).map_or(0.0, |(_, valence)| *valence)
        };
        let denied = words().any(|word| word == "not");
        let total: f64 = words().map(valence).sum();
        sum += if denied { -0.5 * total } else { total }.clamp(-1.0, 1.0);
        sentences += 1;
    }
    if sentences == 0 { 0.0 } else { sum / sentences as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_felt_one_by_one() {
        assert_eq!(sentiment(""), 0.0);
        assert_eq!(sentiment("Mia was happy."), 1.0);
        assert_eq!(sentiment("Mia was happy happy happy."), 1.0);
        assert_eq!(sentiment("Mia was happy. Mia was sad."), 0.0);
        assert_eq!(sentiment("It was not bad."), 0.25);
        assert_eq!(sentiment("Mia lived in the forest. Mia was HAPPY!"), 0.5);
    }
}
