//! Runs a folder of vector files against the formulas that claim them.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::compare::{Answers, Comparison, Precision, compare};
use crate::on_device::{Lab, TensorInputs};
use crate::vectors::{Case, Inputs};

/// The code that a `function` of the vector files names.
#[derive(Clone, Copy)]
pub enum Formula {
    /// A host function in both precisions, `f32` first.
    Host(fn(&Inputs) -> Answers, fn(&Inputs) -> Answers),
    /// A host function that computes in double precision only.
    HostDouble(fn(&Inputs) -> Answers),
    /// A tensor function: on every device under test, in every precision the device has.
    Tensors(fn(&TensorInputs) -> Answers),
    /// A file with its own schema, checked case by case in double precision.
    OwnSchema(fn(&Value) -> Comparison),
}

/// Formulas by the name that files call them; `env_trace` files are told apart by their environment,
/// `env_trace:CartPole-v1`.
pub type Formulas = &'static [(&'static str, Formula)];

/// What another suite of this package runs: entries of the folder, by name, with the suite.
const ELSEWHERE: [(&str, &str); 1] = [("hf", "hf")];

/// What belongs to the folder and holds no vectors.
const NO_VECTORS: [&str; 1] = ["README.md"];

/// How one file went.
pub struct FileReport {
    /// The file's name.
    pub name: String,
    /// The formula it names.
    pub function: String,
    /// Its number of cases.
    pub cases: usize,
    /// Cases that single precision cannot hold.
    pub not_in_f32: usize,
    /// Where it ran.
    pub runs: Vec<String>,
    /// Numbers compared, over all runs.
    pub compared: usize,
    /// One sentence per fault.
    pub faults: Vec<String>,
}

/// How a folder went.
pub struct Report {
    folder: PathBuf,
    files: Vec<FileReport>,
    /// Entries that nothing knows, with what is unknown about them.
    unknown: Vec<String>,
    elsewhere: Vec<String>,
}

impl Report {
    /// Runs every vector file of `folder`.
    pub fn of(folder: &Path, subjects: &[Formulas]) -> Self {
        let mut report =
            Self { folder: folder.to_owned(), files: vec![], unknown: vec![], elsewhere: vec![] };
        for path in entries(folder) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if NO_VECTORS.contains(&name.as_str()) {
                continue;
            }
            if let Some((_, suite)) = ELSEWHERE.iter().find(|(entry, _)| *entry == name) {
                report.elsewhere.push(format!("{name} (`--test {suite}`, {} files)", count_files(&path)));
                continue;
            }
            match run_file(&path, &name, subjects) {
                Ok(file) => report.files.push(file),
                Err(why) => report.unknown.push(format!("{name}: {why}")),
            }
        }
        report
    }

    /// Asserts that each of these formulas has a file, and that all cases of it agree.
    #[track_caller]
    pub fn demand(&self, formulas: Formulas) {
        let missing =
            formulas.iter().filter(|(function, _)| !self.files.iter().any(|file| file.function == *function));
        let missing: Vec<&str> = missing.map(|(function, _)| *function).collect();
        assert!(missing.is_empty(), "{} holds no file for {missing:?}", self.folder.display());
        let claimed = |file: &&FileReport| formulas.iter().any(|(function, _)| file.function == *function);
        assert_no_faults(self.files.iter().filter(claimed));
    }

    /// Asserts that the folder holds nothing but files of known schema and function, and that all agree.
    #[track_caller]
    pub fn demand_everything(&self) {
        assert!(
            self.unknown.is_empty(),
            "{} holds what no code knows:\n{}",
            self.folder.display(),
            self.unknown.join("\n")
        );
        assert_no_faults(self.files.iter());
    }

    /// One line per file, and the total.
    pub fn summary(&self) -> String {
        let mut text = format!("golden vectors of {}\n", self.folder.display());
        for file in &self.files {
            let FileReport { name, cases, compared, runs, faults, .. } = file;
            let runs = runs.join(", ");
            let faults = if faults.is_empty() { String::new() } else { format!(", {} FAULTS", faults.len()) };
            let skipped = match file.not_in_f32 {
                0 => String::new(),
                n => format!(", {n} beyond f32"),
            };
            let _ = writeln!(
                text,
                "  {name:<34} {cases:>3} cases, {compared:>6} numbers{skipped}{faults} ({runs})"
            );
        }
        let total = |of: fn(&FileReport) -> usize| self.files.iter().map(of).sum::<usize>();
        let (cases, compared, faults) =
            (total(|f| f.cases), total(|f| f.compared), total(|f| f.faults.len()));
        let files = self.files.len();
        let _ = writeln!(
            text,
            "  total: {files} files, {cases} cases, {compared} numbers compared, {faults} faults"
        );
        let elsewhere =
            if self.elsewhere.is_empty() { "nothing".to_owned() } else { self.elsewhere.join(", ") };
        let _ = writeln!(text, "  run by another suite: {elsewhere}");
        text
    }
}

#[track_caller]
fn assert_no_faults<'a>(files: impl Iterator<Item = &'a FileReport>) {
    const SHOWN: usize = 20;
    let faults: Vec<&str> = files.flat_map(|file| &file.faults).map(String::as_str).collect();
    let shown = &faults[..faults.len().min(SHOWN)];
    assert!(faults.is_empty(), "{} faults, the first {}:\n{}", faults.len(), shown.len(), shown.join("\n"));
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths
}

fn count_files(path: &Path) -> usize {
    if path.is_dir() { entries(path).iter().map(|path| count_files(path)).sum() } else { 1 }
}

/// Runs one file, or says why no code knows what to do with it.
fn run_file(path: &Path, name: &str, subjects: &[Formulas]) -> Result<FileReport, String> {
    if !name.ends_with(".json") {
        return Err("not a JSON file".to_owned());
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let file: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let function = file["function"].as_str().ok_or("no `function`")?;
    let function = match file["env"].as_str() {
        Some(env) => format!("{function}:{env}"),
        None => function.to_owned(),
    };
    let known = subjects.iter().copied().flatten().find(|(known, _)| *known == function);
    let (_, formula) = known.ok_or_else(|| format!("no code computes the function `{function}`"))?;
    let count = file["cases"].as_array().map_or(0, Vec::len);
    if count == 0 {
        return Err("no cases".to_owned());
    }
    let mut report = FileReport {
        name: name.to_owned(),
        function,
        cases: count,
        not_in_f32: 0,
        runs: vec![],
        compared: 0,
        faults: vec![],
    };
    if let Formula::OwnSchema(check) = formula {
        report.add("host f64", name, || check(&file));
        report.runs.push("host f64".to_owned());
        return Ok(report);
    }
    let cases = Vec::<Case>::deserialize(&file["cases"]).map_err(|error| error.to_string())?;
    report.not_in_f32 = cases.iter().filter(|case| !case.f32_representable).count();
    report.run_cases(&cases, *formula);
    if report.compared == 0 && report.faults.is_empty() {
        report.faults.push(format!("{name}: nothing was compared (is there a device?)"));
    }
    Ok(report)
}

impl FileReport {
    fn run_cases(&mut self, cases: &[Case], formula: Formula) {
        match formula {
            Formula::Host(single, double) => {
                self.run("host f32", cases, Precision::Single, single);
                self.run("host f64", cases, Precision::Double, double);
            }
            Formula::HostDouble(double) => self.run("host f64", cases, Precision::Double, double),
            Formula::Tensors(tensors) => {
                for lab in &Lab::all() {
                    let run = format!("{} {}", lab.name, lab.precision.name());
                    self.run(&run, cases, lab.precision, |inputs| tensors(&TensorInputs { inputs, lab }));
                }
            }
            Formula::OwnSchema(_) => unreachable!("handled before its cases are read"),
        }
    }

    fn run(&mut self, run: &str, cases: &[Case], precision: Precision, answer: impl Fn(&Inputs) -> Answers) {
        self.runs.push(run.to_owned());
        let fits = |case: &&Case| precision == Precision::Double || case.f32_representable;
        for case in cases.iter().filter(fits) {
            let place = format!("{}, case `{}`", self.name, case.name);
            self.add(run, &place, || compare(case, &answer(&case.inputs), precision));
        }
    }

    /// Adds a comparison; a panic inside is a fault like any other, so that the report stays whole.
    fn add(&mut self, run: &str, place: &str, comparison: impl FnOnce() -> Comparison) {
        let result = catch_unwind(AssertUnwindSafe(comparison)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Comparison { compared: 0, faults: vec![format!("panicked: {text}")] }
        });
        self.compared += result.compared;
        self.faults.extend(result.faults.iter().map(|fault| format!("{place}, {run}: {fault}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::answers;

    fn double(inputs: &Inputs) -> Answers {
        answers().with("y", 2.0 * inputs.number("x"))
    }

    const DOUBLE: Formulas = &[("double", Formula::HostDouble(double))];

    /// The report on a folder of these files.
    fn report(files: &[(&str, &str)]) -> Report {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Report::of(folder.path(), &[DOUBLE])
    }

    fn vector(function: &str, x: &str, y: f64) -> String {
        format!(
            r#"{{"function": "{function}", "cases": [{{"name": "one", "inputs": {{{x}}}, "expected": {{"y": {y}}},
            "rtol": 0, "atol": 0, "atol_f32": {{"y": 0}}, "f32_representable": true}}]}}"#
        )
    }

    #[test]
    fn a_folder_that_agrees_is_counted() {
        let report = report(&[("double.json", &vector("double", "\"x\": 2", 4.0)), ("README.md", "")]);
        report.demand(DOUBLE);
        report.demand_everything();
        assert!(report.summary().contains("total: 1 files, 1 cases, 1 numbers compared, 0 faults"));
    }

    #[test]
    fn a_fault_names_file_case_run_key_and_both_numbers() {
        let report = report(&[("double.json", &vector("double", "\"x\": 2", 5.0))]);
        let fault = "double.json, case `one`, host f64: `y`: got 4, want 5 (off by 1.0e0, allowed 0.0e0)";
        assert_eq!(report.files[0].faults, [fault]);
    }

    #[test]
    fn a_formula_that_panics_is_a_fault_of_its_case() {
        let report = report(&[("double.json", &vector("double", "", 5.0))]);
        let fault = "double.json, case `one`, host f64: panicked: the case has no input `x`";
        assert_eq!(report.files[0].faults, [fault]);
    }

    #[test]
    fn a_file_or_function_that_no_code_knows_is_named() {
        let unknown = |name: &str, text: &str| report(&[(name, text)]).unknown;
        let halve = vector("halve", "\"x\": 2", 1.0);
        assert_eq!(unknown("new.json", &halve), ["new.json: no code computes the function `halve`"]);
        assert_eq!(unknown("notes.txt", ""), ["notes.txt: not a JSON file"]);
        assert_eq!(unknown("empty.json", r#"{"function": "double", "cases": []}"#), ["empty.json: no cases"]);
        assert!(unknown("torn.json", "{").join("").starts_with("torn.json: EOF"));
        let nameless = r#"{"function": "double", "cases": [{"name": "one"}]}"#;
        assert!(unknown("odd.json", nameless).join("").contains("missing field `inputs`"));
    }

    #[test]
    #[should_panic(expected = "holds what no code knows:\nnotes.txt: not a JSON file")]
    fn an_unknown_file_fails_the_suite() {
        report(&[("notes.txt", "")]).demand_everything();
    }

    #[test]
    #[should_panic(expected = "holds no file for [\"double\"]")]
    fn a_formula_without_a_file_fails_the_suite() {
        report(&[]).demand(DOUBLE);
    }

    #[test]
    fn what_another_suite_runs_is_named_not_run() {
        let report = report(&[("hf", "not even JSON")]);
        report.demand_everything();
        assert!(report.summary().contains("run by another suite: hf (`--test hf`, 1 files)"));
    }
}
