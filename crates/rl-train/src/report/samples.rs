//! What a language model wrote, before and after, from `samples.jsonl` of a run.
//!
//! One object per line: `update`, `prompt`, `response`, and `score` if there is one. The first and the last update that
//! wrote to a prompt are shown side by side.

use std::fs;

use serde::Deserialize;

use super::html::table;
use super::verdict::number;
use crate::recording::Recording;

/// Prompts that are shown.
const MOST: usize = 12;

/// One line of `samples.jsonl`.
#[derive(Debug, Clone, Deserialize)]
struct Sample {
    update: u64,
    prompt: String,
    response: String,
    score: Option<f64>,
}

/// Prompts with what was written to them first and last; empty if the run wrote no samples.
pub fn table_of(run: &Recording) -> String {
    let text = fs::read_to_string(run.path.join("samples.jsonl")).unwrap_or_default();
    let samples: Vec<Sample> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    rows(&samples)
        .map_or(String::new(), |(head, rows)| table(&format!("{}: what it wrote", run.name), &head, &rows))
}

fn rows(samples: &[Sample]) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    let (first, last) = (samples.first()?.update, samples.last()?.update);
    let said = |sample: &Sample| {
        let score = sample.score.map_or(String::new(), |score| format!("\n(score {})", number(score)));
        format!("{}{score}", sample.response)
    };
    let after: Vec<&Sample> = samples.iter().filter(|sample| sample.update == last).take(MOST).collect();
    let before: Vec<&Sample> = samples.iter().filter(|sample| sample.update == first).collect();
    let rows = after.iter().enumerate().map(|(i, now)| {
        // Prompts may come twice: the place in the list is what pairs them.
        let then = before.get(i).filter(|then| then.prompt == now.prompt);
        let then = then.or_else(|| before.iter().find(|then| then.prompt == now.prompt));
        vec![now.prompt.clone(), then.map_or("–".into(), |then| said(then)), said(now)]
    });
    let head = vec!["prompt".into(), format!("update {first}"), format!("update {last}")];
    Some((head, rows.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prompt_stands_beside_its_first_and_its_last_response() {
        let sample = |update, prompt: &str, response: &str, score| Sample {
            update,
            prompt: prompt.into(),
            response: response.into(),
            score,
        };
        let samples = [
            sample(0, "Once", "upon", Some(0.5)),
            sample(0, "Lily", "ran", None),
            sample(9, "Once", "again", Some(1.5)),
            sample(9, "Tom", "slept", None),
        ];
        let (head, rows) = rows(&samples).unwrap();
        assert_eq!(head, ["prompt", "update 0", "update 9"]);
        assert_eq!(rows[0], ["Once", "upon\n(score 0.5)", "again\n(score 1.5)"]);
        assert_eq!(rows[1], ["Tom", "–", "slept"]);
    }
}
