//! Studies from outside: what they leave behind, the form of their findings, and what is refused.

use serde_json::Value;

use crate::{Place, text};

/// Runs the quick size of a study and checks everything about it that does not depend on chance.
#[track_caller]
fn checked(name: &str) -> Value {
    let place = Place::new();
    let said = place.succeeds(&format!("study {name} --quick --out s"));
    let results = place.json("s/results.json");
    assert_eq!((&results["study"], &results["size"]), (&Value::from(name), &Value::from("quick")));
    let rows = results["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    let csv = text(&place.bytes("s/results.csv"));
    assert_eq!(csv.lines().count(), 1 + rows.len());
    for interval in
        rows.iter().flat_map(|row| row.as_object().unwrap().values()).filter(|cell| cell.is_object())
    {
        let [low, estimate, high] = ["low", "estimate", "high"].map(|key| interval[key].as_f64());
        // A number that is not finite is null in JSON.
        if let (Some(low), Some(estimate), Some(high)) = (low, estimate, high) {
            assert!(low <= high && low.min(estimate) <= estimate, "{name}: {interval}");
        }
    }

    let findings = results["findings"].as_array().unwrap();
    let written = text(&place.bytes("s/findings.md"));
    assert!(written.starts_with(&format!("# {name}\n")) && written.contains("proves nothing"), "{written}");
    assert!(findings.len() >= 2);
    for finding in findings {
        let [claim, evidence] = ["claim", "evidence"].map(|key| finding[key].as_str().unwrap());
        let verdict = finding["verdict"].as_str().unwrap();
        assert!(["held", "failed", "open"].contains(&verdict), "{finding}");
        assert!(evidence.contains(|c: char| c.is_ascii_digit()), "no number in {evidence:?}");
        assert!(written.contains(claim) && said.contains(claim), "{claim:?} is not told");
    }

    let pictures: Vec<&str> = written
        .lines()
        .filter_map(|line| line.strip_prefix("![")?.strip_suffix(')')?.split_once("]("))
        .map(|(_, file)| file)
        .collect();
    assert!(!pictures.is_empty());
    for file in pictures {
        let svg = text(&place.bytes(&format!("s/{file}")));
        assert!(svg.starts_with("<svg") && svg.contains("<text") && svg.contains("poly"), "{file}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{file} has a point nowhere");
    }
    results
}

/// The first row whose `key` is `value`.
#[track_caller]
fn row<'a>(results: &'a Value, key: &str, value: &str) -> &'a Value {
    let rows = results["rows"].as_array().unwrap();
    let of = |row: &Value| match &row[key] {
        Value::String(text) => text.clone(),
        number => number.as_f64().map_or_else(String::new, |number| number.to_string()),
    };
    rows.iter().find(|row| of(row) == value).unwrap_or_else(|| panic!("no row with {key} = {value}"))
}

#[test]
fn kl_estimators() {
    let results = checked("kl-estimators");
    // Exact sums: these verdicts depend on no seed.
    for finding in results["findings"].as_array().unwrap() {
        let claim = finding["claim"].as_str().unwrap();
        if !claim.contains("quieter than k1 at every distance") {
            assert_eq!(finding["verdict"], "held", "{finding}");
        }
    }
}

#[test]
fn kakade_plateau() {
    let results = checked("kakade-plateau");
    let [plain, natural] = ["plain", "natural"].map(|name| row(&results, "gradient", name));
    // Two lines of numpy say the same: 309 updates, 285 of them between .9 and 1.1; and 18.
    assert_eq!(plain["updates"], 309.0);
    assert_eq!(plain["updates_near_1"], 285.0);
    assert_eq!(natural["updates"], 18.0);
}

#[test]
fn studies_of_the_token_world() {
    let results = checked("kl-controller");
    assert!(row(&results, "target", "1")["kl"]["estimate"].as_f64().unwrap() > 0.0);
    checked("overoptimization");
    checked("guards");
    let results = checked("frontier");
    // Exact numbers: best-of-n lies below the frontier, and near it.
    let share = row(&results, "method", "best-of-n")["share"]["estimate"].as_f64().unwrap();
    assert!(0.7 < share && share < 1.0, "{share}");
    assert_eq!(results["findings"][0]["verdict"], "held", "{}", results["findings"][0]);
}

#[test]
fn dpo_consistency() {
    let results = checked("dpo-consistency");
    let first = row(&results, "comparisons", "300");
    assert!(first["kl_to_optimum"]["estimate"].as_f64().unwrap() > 0.0);
}

#[test]
fn studies_in_environments() {
    let results = checked("trust-region");
    // Whatever the return is after so few updates: the bound holds.
    let bound = results["findings"].as_array().unwrap().last().unwrap();
    assert_eq!(bound["verdict"], "held", "{bound}");
    checked("beta-target");
    let results = checked("ppo-table");
    assert_eq!(results["rows"].as_array().unwrap().len(), 11);
}

#[test]
fn one_seed_gives_one_study() {
    let place = Place::new();
    for out in ["a", "b"] {
        place.succeeds(&format!("study kakade-plateau --quick --seeds 4 --out {out}"));
    }
    for file in ["results.csv", "findings.md", "average-reward.svg"] {
        assert_eq!(place.bytes(&format!("a/{file}")), place.bytes(&format!("b/{file}")), "{file}");
    }
    assert_eq!(place.json("a/results.json")["seeds"], 4);
}

#[test]
fn an_unknown_study_is_answered_with_the_nearest() {
    let place = Place::new();
    let said = place.fails("study kakade-platau", 2);
    assert!(said.contains("did you mean `kakade-plateau`?") && said.contains("kl-estimators"), "{said}");
    let said = place.fails("study kakade-plateau --seeds 0", 2);
    assert!(said.contains("--seeds"), "{said}");
    assert!(place.succeeds("list").contains("studies (rl-train study NAME)"));
}

#[test]
fn a_folder_that_holds_something_is_refused() {
    let place = Place::new();
    let said = place.fails("study kakade-plateau --quick --out .", 2);
    assert!(said.contains("is not empty"), "{said}");
}
