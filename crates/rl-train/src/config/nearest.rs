//! The nearest of some names, for "did you mean".

/// The name with the fewest edits from `got`, if that are few: at most two, or a third of its length.
pub fn nearest<'a, S: AsRef<str>>(got: &str, known: &'a [S]) -> Option<&'a str> {
    let (edits, name) = known.iter().map(|name| (distance(got, name.as_ref()), name.as_ref())).min()?;
    (edits <= 2.max(got.chars().count() / 3)).then_some(name)
}

/// Insertions, deletions and substitutions from `a` to `b`.   Levenshtein 1966
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        let known = ["epochs", "gamma", "gae_lambda"];
        assert_eq!(nearest("epoch", &known), Some("epochs"));
        assert_eq!(nearest("gea_lambda", &known), Some("gae_lambda"));
        assert_eq!(nearest("temperature", &known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
