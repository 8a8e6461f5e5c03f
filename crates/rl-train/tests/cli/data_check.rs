//! `rl-train data check`: what it finds, on files made here and on real ones where they are at hand.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::Place;

/// Five pairs: a tie, a repetition, its contradiction, and a prompt longer than its answers.
const PAIRS: &str = r#"{"prompt": "2 + 2?", "chosen": " It is 4.", "rejected": " 5"}
{"prompt": "2 + 2?", "chosen": " It is 4.", "rejected": " 5"}
{"prompt": "2 + 2?", "chosen": " 5", "rejected": " It is 4."}
{"prompt": "a b c d e f g h i j k l m n", "chosen": " o", "rejected": " 7"}
{"prompt": "Hi", "chosen": " Ho", "rejected": " Ho"}
"#;

fn place(name: &str, text: &str) -> Place {
    let place = Place::new();
    fs::write(place.path(name), text).unwrap();
    place
}

#[track_caller]
fn says(report: &str, words: &[&str]) {
    for word in words {
        assert!(report.contains(word), "no `{word}` in\n{report}");
    }
}

#[test]
fn ties_repetitions_lengths_and_truncation_are_reported() {
    let place = place("p.jsonl", PAIRS);
    let report = place.succeeds("data check p.jsonl --max-tokens 20 --show 1");
    says(
        &report,
        &[
            "p.jsonl: 5 pairs, 0 single judgements",
            "bad rows         none",
            "ties             1 pairs",
            "duplicates       1 pairs",
            "contradictions   1 pairs",
            "prompts          3 different; mean",
            "longest 27",
            "the longer answer wins 66.7% of the 3 pairs",
            "truncation       1 pairs are longer than 20 tokens",
            "1 of them would keep nothing of an answer: pairs 4",
            "prompt      6  2",
            "chosen      9  [ ] [I] [t] [ ] [i] [s] [ ] [4] [.]",
            "--model FOLDER",
        ],
    );
    assert!(!report.contains("pair 2, as"), "{report}");
}

#[test]
fn a_bad_row_ends_the_check_or_is_counted() {
    let bad = r#"{"prompt": "p", "chosen": "", "rejected": "b"}"#;
    let place = place("p.jsonl", &format!("{PAIRS}{bad}\n"));
    let error = place.fails("data check p.jsonl", 1);
    says(&error, &["p.jsonl, line 6: `chosen` is empty", "--on-bad skip"]);
    let report = place.succeeds("data check p.jsonl --on-bad skip");
    says(&report, &["5 pairs", "1 skipped, 1 of them for an empty answer", "line 6: `chosen` is empty"]);
}

#[test]
fn what_cannot_be_read_is_named() {
    let place = place("p.jsonl", r#"{"q": "p", "a": "x", "b": "y"}"#);
    says(&place.fails("data check nowhere.jsonl", 1), &["cannot read `nowhere.jsonl`"]);
    says(
        &place.fails("data check p.jsonl", 1),
        &["line 1: `chosen` is missing (found `q`, `a`, `b`)", "--field"],
    );
    says(&place.fails("data check p.jsonl --field chosen", 2), &["`chosen` is no rename", "chosen=answer_a"]);
    says(&place.fails("data check p.jsonl --field better=a", 2), &["`better` is no field", "prompt"]);
    says(&place.fails("data check p.jsonl --on-bad ignore", 2), &["--on-bad", "`error` and `skip`"]);
    says(&place.fails("data check p.jsonl --max-tokens 1", 2), &["--max-tokens"]);
    let renamed = "--field prompt=q --field chosen=a --field rejected=b";
    says(&place.succeeds(&format!("data check p.jsonl {renamed}")), &["1 pairs"]);
    let error = place.fails(&format!("data check p.jsonl {renamed} --model nowhere"), 1);
    says(&error, &["no model in `nowhere`", "config.json"]);
}

#[test]
fn a_parquet_file_is_read_as_hubs_serve_it() {
    let place = Place::new();
    let schema = "message pairs {
        REQUIRED BYTE_ARRAY prompt (UTF8);
        REQUIRED BYTE_ARRAY chosen (UTF8);
        OPTIONAL BYTE_ARRAY rejected (UTF8);
        REQUIRED DOUBLE margin;
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = fs::File::create(place.path("p.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
    let texts = |texts: &[&str]| texts.iter().map(|text| ByteArray::from(*text)).collect::<Vec<_>>();
    let mut rows = writer.next_row_group().unwrap();
    for (column, levels) in
        [(texts(&["p", "q"]), None), (texts(&["good", "é"]), None), (texts(&["no"]), Some(&[1, 0][..]))]
    {
        let mut next = rows.next_column().unwrap().unwrap();
        next.typed::<ByteArrayType>().write_batch(&column, levels, None).unwrap();
        next.close().unwrap();
    }
    let mut next = rows.next_column().unwrap().unwrap();
    next.typed::<DoubleType>().write_batch(&[0.5, 1.0], None, None).unwrap();
    next.close().unwrap();
    rows.close().unwrap();
    writer.close().unwrap();

    says(
        &place.fails("data check p.parquet", 1),
        &["p.parquet, row 2: `rejected` must be text, but is null"],
    );
    says(&place.succeeds("data check p.parquet --on-bad skip"), &["1 pairs", "1 skipped", "[g] [o] [o] [d]"]);
    let whole = fs::read(place.path("p.parquet")).unwrap();
    fs::write(place.path("cut.parquet"), &whole[..whole.len() / 2]).unwrap();
    says(&place.fails("data check cut.parquet", 1), &["cut.parquet", "damaged"]);
}

/// `RL_DATA_DIR`, or a line that says what is skipped.
fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("RL_DATA_DIR").map(PathBuf::from).filter(|it| it.join("pref").is_dir());
    if folder.is_none() {
        println!("skipped: RL_DATA_DIR names no folder with pref");
    }
    folder
}

#[test]
fn every_real_file_is_checked_with_its_known_counts() {
    let Some(data) = data() else { return };
    let place = Place::new();
    let counts: serde_json::Value =
        serde_json::from_slice(&fs::read(data.join("pref/counts.json")).unwrap()).unwrap();
    let model = data.join("models/stories260K-hf");
    for (name, counts) in counts.as_object().unwrap() {
        let mut command = place.command("data check --on-bad skip");
        let out = command.arg(data.join("pref").join(name)).arg("--model").arg(&model).output().unwrap();
        let (report, error) = (super::text(&out.stdout), super::text(&out.stderr));
        assert!(out.status.success(), "{name}: {error}");
        let number = |key: &str| counts[key].as_u64().unwrap();
        let read = number("pairs") - number("empty_response");
        // Where an answer is empty, no other row has the prompt.
        let prompts = number("distinct_prompts") - number("empty_response");
        says(
            &report,
            &[
                &format!("{name}: {read} pairs"),
                &format!("ties             {} pairs", number("identical")),
                &format!("prompts          {prompts} different"),
                "tokens, longest",
                "length bias",
                "truncation",
                "pair 2, as the model reads it",
            ],
        );
    }
}

#[test]
fn an_answer_is_cut_into_the_tokens_that_the_model_would_write() {
    let Some(data) = data() else { return };
    let place = Place::new();
    let mut command = place.command("data check --ending open --show 1 --model");
    command.arg(data.join("models/stories260K-hf")).arg(data.join("pref/story_prefs_train.jsonl"));
    let report = super::text(&command.output().unwrap().stdout);
    // No space of the tokenizer's own before an answer, and no end behind one that was cut.
    says(&report, &["<s> ▁One ▁day", "[▁She] [▁was]"]);
    assert!(!report.contains("[▁] [▁She]") && !report.contains("</s>"), "{report}");
}
