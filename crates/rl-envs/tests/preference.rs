//! Preference files: the counts of real data where it is at hand, containers that must agree, hostile input.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use rl_envs::env_rng;
use rl_envs::preference::{
    DataError, Dataset, Fault, Fields, MOST_ROW_BYTES, OnBad, Preferred, Prompt, ReadOptions, Survey,
    SyntheticPreferences,
};

const ROWS: [&str; 2] = [
    r#"{"prompt": "p\n", "chosen": "a, \"b\"", "rejected": "c", "margin": 0.5}"#,
    r#"{"prompt": "q", "chosen": "é", "rejected": "d", "margin": 2}"#,
];

fn written(bytes: &[u8], name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn load(bytes: &[u8], name: &str) -> Result<Dataset, DataError> {
    let (_folder, path) = written(bytes, name);
    Dataset::load(&path, &ReadOptions::default())
}

fn refused(bytes: &[u8], name: &str) -> String {
    load(bytes, name).unwrap_err().to_string()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn every_container_gives_the_same_rows() {
    let lines = ROWS.join("\n");
    let want = load(lines.as_bytes(), "a.jsonl").unwrap();
    assert_eq!(want.pairs[0].chosen, "a, \"b\"");
    assert_eq!(want.pairs[1].known_margin(), Some(2.0));
    let array = format!("[{}]", ROWS.join(","));
    let csv = "margin,prompt,chosen,rejected\n0.5,\"p\n\",\"a, \"\"b\"\"\",c\n2,q,é,d\n";
    let members = [gzip(format!("{}\n", ROWS[0]).as_bytes()), gzip(ROWS[1].as_bytes())].concat();
    for (bytes, name) in [
        (array.as_bytes(), "a.json"),
        (array.as_bytes(), "a.jsonl"),
        (csv.as_bytes(), "a.csv"),
        (csv.as_bytes(), "a"),
        (&gzip(csv.as_bytes()), "a.csv.gz"),
        (&gzip(array.as_bytes()), "a.json.gz"),
        (&members, "a.jsonl"),
    ] {
        assert_eq!(load(bytes, name).unwrap(), want, "{name}");
    }
}

#[test]
fn a_folder_is_its_files_by_name() {
    let (folder, _) = written(ROWS[1].as_bytes(), "b.jsonl");
    fs::write(folder.path().join("a.json"), format!("[{}]", ROWS[0])).unwrap();
    fs::write(folder.path().join("README.md"), "not data").unwrap();
    let data = Dataset::load(folder.path(), &ReadOptions::default()).unwrap();
    assert_eq!(data.pairs, load(ROWS.join("\n").as_bytes(), "a.jsonl").unwrap().pairs);
}

#[test]
fn renamed_columns_and_labels_are_read() {
    let (_folder, path) = written(br#"{"q": "p", "a": "good", "b": "bad", "chosen": 3}"#, "a.jsonl");
    let fields = Fields::renamed(["prompt=q", "chosen=a", "rejected=b"]).unwrap();
    let data = Dataset::load(&path, &ReadOptions { fields, ..ReadOptions::default() }).unwrap();
    assert_eq!((data.pairs[0].chosen.as_str(), data.pairs[0].rejected.as_str()), ("good", "bad"));
    let second = br#"{"input": "p", "output_1": "bad", "output_2": "good", "label": 2}"#;
    assert_eq!(load(second, "a.jsonl").unwrap().pairs[0].chosen, "good");
    let neither = br#"{"input": "p", "output_1": "bad", "output_2": "good", "label": 0}"#;
    assert!(refused(neither, "a.jsonl").contains("line 1: `label` must be 1 or 2, but is the number 0"));
    let judged = br#"{"prompt": "p", "completion": "c", "label": false}"#;
    assert!(!load(judged, "a.jsonl").unwrap().judged[0].good);
}

#[test]
fn differing_prompts_are_refused() {
    let hh = br#"{"chosen": "\n\nHuman: a\n\nAssistant: x", "rejected": "\n\nHuman: b\n\nAssistant: y"}"#;
    assert!(
        refused(hh, "a.jsonl").contains("line 1: the prompts of `chosen` and `rejected` differ (from byte 9")
    );
    let chat = br#"{"chosen": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "x"}],
        "rejected": [{"role": "user", "content": "b"}, {"role": "assistant", "content": "y"}]}"#;
    assert!(refused(&[b"[", &chat[..], b"]"].concat(), "a.json").contains("element 1 (line 1): the prompts"));
}

#[test]
fn a_row_that_is_wrong_says_what_would_do() {
    for (row, said) in [
        (r#"{"prompt": "p", "chosen": " ", "rejected": "b"}"#, "`chosen` is empty"),
        (r#"{"prompt": "p", "chosen": {"a": 1}, "rejected": 2}"#, "`chosen"),
        (r#"{"prompt": "p", "chosen": "a", "chosen": "b", "rejected": "c"}"#, "`chosen` stands twice"),
        (r#"{"prompt": "p", "chosen": "a", "rejected": "b", "margin": 1e999}"#, "number out of range"),
        (r#"{"prompt": "p", "chosen": "a", "rejected": "\ud800"}"#, "column"),
        (r#"{"prompt": "p", "chosen": "a", "rejected": "b"} {}"#, "trailing characters"),
        (r#"{"text": "p"}"#, "`chosen` is missing (found `text`)"),
        (r#"3"#, "a row must be a JSON object, but is the number 3"),
    ] {
        let error = refused(row.as_bytes(), "a.jsonl");
        assert!(error.contains("a.jsonl, line 1: ") && error.contains(said), "{row}: {error}");
    }
}

#[test]
fn what_is_no_container_is_named() {
    for (bytes, said) in [
        (&b"version https://git-lfs.github.com/spec/v1\n"[..], "a Git LFS pointer"),
        (b"<!DOCTYPE html>", "a web page"),
        (b"\xff\xfe{\0", "UTF-16"),
        (b"{\0\"\0", "UTF-16"),
        (b"PK\x03\x04", "a zip archive"),
        (b"", "is empty"),
        (b"[]", "is empty"),
        (b"prompt,chosen,rejected\n", "is empty"),
    ] {
        let error = refused(bytes, "a.csv");
        assert!(error.contains(said), "{error}");
    }
    let whole = gzip(ROWS.join("\n").as_bytes());
    assert!(refused(&whole[..whole.len() - 9], "a.jsonl").contains("cut off"));
    assert!(refused(&gzip(&whole), "a.jsonl").contains("gzip inside gzip"));
    assert!(
        refused(b"prompt,chosen,rejected\np,a,b\np,a,\"b", "a.csv").contains("line 3: the file ends inside")
    );
    assert!(refused(b"prompt,chosen,rejected\np,a\n", "a.csv").contains("line 2: this row has 2 cells"));
}

#[test]
fn hostile_files_are_refused_in_bounded_space() {
    let deep = format!(r#"{{"prompt": "p", "rejected": "r", "chosen": {}"#, "[".repeat(1_000_000));
    assert!(refused(deep.as_bytes(), "a.jsonl").contains("recursion limit"));
    assert!(refused(format!("[{deep}").as_bytes(), "a.json").contains("the file ends inside this element"));
    let long = vec![b'x'; MOST_ROW_BYTES + 10];
    let long = [b"{\"prompt\": \"", &long[..], b"\"}\n", ROWS[0].as_bytes()].concat();
    assert!(refused(&long, "a.jsonl").contains("line 1: this row is longer than"));
    let (_folder, path) = written(&long, "a.jsonl");
    let skip = ReadOptions { on_bad: OnBad::Skip, ..ReadOptions::default() };
    let data = Dataset::load(&path, &skip).unwrap();
    assert_eq!((data.rows(), data.skipped.count), (1, 1));
    assert!(matches!(data.skipped.listed[0].1, Fault::TooLong { .. }));
    // A gzip of blank lines shrinks about a thousandfold at the best level.
    let mut best = GzEncoder::new(Vec::new(), Compression::best());
    best.write_all(&vec![b'\n'; 1 << 27]).unwrap();
    let best = best.finish().unwrap();
    assert!(refused(&best, "a.jsonl").contains("swells"));
}

#[test]
fn synthetic_preferences_follow_their_probabilities() {
    let judge = SyntheticPreferences { temperature: 0.5, flip: 0.1, length_bias: 0.2 };
    let p = judge.probability([1.0, 0.5], [3, 5]);
    let right = 1.0 / (1.0 + (-0.6_f64).exp()); // 0.5/0.5 − 0.2·2
    assert!((p - (0.9 * right + 0.1 * (1.0 - right))).abs() < 1e-12);
    assert!((p + judge.probability([0.5, 1.0], [5, 3]) - 1.0).abs() < 1e-12);
    let mut rng = env_rng(1, 0);
    let n = 100_000;
    let first = (0..n).filter(|_| judge.judge([1.0, 0.5], [3, 5], &mut rng) == Preferred::First).count();
    assert!((first as f64 / f64::from(n) - p).abs() < 5.0 * (0.25 / f64::from(n)).sqrt());
}

/// The counts that came with real files, where `RL_DATA_DIR` has them.
#[test]
fn real_files_have_the_counts_that_came_with_them() {
    let Some(folder) = std::env::var_os("RL_DATA_DIR").map(|it| Path::new(&it).join("pref")) else {
        eprintln!("skipped: RL_DATA_DIR is not set");
        return;
    };
    let counts: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.join("counts.json")).unwrap()).unwrap();
    for (file, want) in counts.as_object().unwrap() {
        let options = ReadOptions { on_bad: OnBad::Skip, ..ReadOptions::default() };
        let data = Dataset::load(&folder.join(file), &options).unwrap();
        let survey = Survey::of(&data.pairs, |answer| answer.trim().chars().count());
        let n = |key: &str| want[key].as_u64().unwrap();
        assert_eq!(data.pairs.len() as u64 + data.skipped.count, n("rows"), "{file}");
        assert_eq!(data.skipped.count, n("empty_response"), "{file}");
        assert_eq!(survey.ties as u64, n("identical"), "{file}");
        assert_eq!(survey.duplicates as u64, n("duplicate_rows"), "{file}");
        assert_eq!(survey.contradictions as u64, n("contradictory_rows"), "{file}");
        assert_eq!(survey.prompts as u64 + data.skipped.count, n("distinct_prompts"), "{file}");
        assert!(data.pairs.iter().all(|pair| !matches!(&pair.prompt, Prompt::Text(text) if text.is_empty())));
    }
}
