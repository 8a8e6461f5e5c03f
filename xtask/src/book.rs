//! `cargo xtask book`: checks the book in docs/ (links, anchors, code) and builds it where mdbook is installed.
//!
//! A link to a line of code carries the code as its text: `` [`let delta = …`](../x.rs#L92) ``. If the code has moved,
//! `--write` puts the new number in; if it has changed, the page has to be written anew.

mod markdown;

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::flags::Book;
use crate::root;
use markdown::{Fence, Link, fences, headings, links};

/// Checks the book, and becomes `mdbook build docs` where there is one.
pub fn run(flags: &Book) -> Result<ExitCode> {
    if flags.write {
        renumber(&root())?;
    }
    let found = findings(&root())?;
    found.iter().for_each(|finding| println!("book: {finding}"));
    if !found.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    if Command::new("mdbook").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!(
            "the book is sound; mdbook is not installed, so it was not built (`cargo install mdbook --locked`)"
        );
        return Ok(ExitCode::SUCCESS);
    }
    let built = crate::succeeds(Command::new("mdbook").arg("build").arg(root().join("docs")))?;
    Ok(if built { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints every finding and says whether there was none.
pub fn passes() -> Result<bool> {
    let found = findings(&root())?;
    found.iter().for_each(|finding| println!("book: {finding}"));
    Ok(found.is_empty())
}

/// Everything that is wrong with the pages.
fn findings(root: &Path) -> Result<Vec<String>> {
    let mut found = vec![];
    let pages = pages(root)?;
    for page in &pages {
        let text = read(root, page)?;
        for link in links(&text) {
            if let Some(what) = broken(root, page, &link) {
                found.push(format!("{}:{}: {what}", page.display(), link.line));
            }
        }
        for fence in fences(&text).into_iter().filter(|fence| fence.language == "rust") {
            if let Some(what) = foreign(root, &fence) {
                found.push(format!("{}:{}: {what}", page.display(), fence.line));
            }
        }
    }
    found.extend(unlisted(root, &pages)?);
    Ok(found)
}

fn read(root: &Path, page: &Path) -> Result<String> {
    fs::read_to_string(root.join(page)).with_context(|| format!("cannot read {}", page.display()))
}

/// README.md and every page of docs/, relative to the root.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (vec![PathBuf::from("README.md")], vec![PathBuf::from("docs")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let path = folder.join(entry?.file_name());
            if root.join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// `path` seen from `page`, without `..`.
fn target(page: &Path, path: &str) -> PathBuf {
    let mut whole = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
}

/// What is wrong with a link, if anything.
fn broken(root: &Path, page: &Path, link: &Link) -> Option<String> {
    if link.target.contains("://") || link.target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
    let place = if path.is_empty() { page.to_path_buf() } else { target(page, path) };
    if !root.join(&place).exists() {
        return Some(format!("`{}` leads nowhere", link.target));
    }
    if let Some(number) = anchor.strip_prefix('L') {
        let number: usize = number.parse().ok()?;
        return moved(&fs::read_to_string(root.join(&place)).ok()?, &link.code()?, number)
            .map(|what| format!("`{}`: {what}", link.target));
    }
    let headings = || fs::read_to_string(root.join(&place)).map(|text| headings(&text)).unwrap_or_default();
    (!anchor.is_empty() && !headings().contains(&anchor.to_owned()))
        .then(|| format!("`{}`: the page has no such heading", link.target))
}

/// Lines of `source` that hold `code`, from 1.
fn lines_of(source: &str, code: &str) -> Vec<usize> {
    source.lines().enumerate().filter(|(_, line)| line.contains(code)).map(|(i, _)| i + 1).collect()
}

/// Whether `code` is no longer line `number`.
fn moved(source: &str, code: &str, number: usize) -> Option<String> {
    let places = lines_of(source, code);
    match places.as_slice() {
        places if places.contains(&number) => None,
        [] => Some(format!("no line holds `{code}` any more; write the page anew")),
        [place] => Some(format!("`{code}` is line {place} now; `cargo xtask book --write` corrects it")),
        places => Some(format!("`{code}` is on lines {places:?}; quote more of it")),
    }
}

/// Puts the right numbers into links to lines whose code is in one place.
fn renumber(root: &Path) -> Result<()> {
    for page in pages(root)? {
        let before = read(root, &page)?;
        let mut text = before.clone();
        for link in links(&before) {
            let Some((path, number)) = link.target.split_once("#L") else { continue };
            let (Some(code), Ok(source)) = (link.code(), fs::read_to_string(root.join(target(&page, path))))
            else {
                continue;
            };
            if let ([place], false) = (lines_of(&source, &code).as_slice(), number.is_empty()) {
                text = text.replace(
                    &format!("[{}]({})", link.text, link.target),
                    &format!("[{}]({path}#L{place})", link.text),
                );
            }
        }
        if text != before {
            fs::write(root.join(&page), text)?;
            println!("{}: line numbers corrected", page.display());
        }
    }
    Ok(())
}

/// Rust on a page is a piece of a file that CI compiles, named after `rust` in the fence.
fn foreign(root: &Path, fence: &Fence) -> Option<String> {
    let Some(file) = &fence.file else {
        return Some("name the file that this Rust is a piece of: ```rust path".to_owned());
    };
    let Ok(source) = fs::read_to_string(root.join(file)) else {
        return Some(format!("`{file}` does not exist"));
    };
    let dedented =
        |text: &str| -> String { text.lines().map(|line| line.trim().to_owned() + "\n").collect() };
    (!dedented(&source).contains(&dedented(&fence.text)))
        .then(|| format!("`{file}` no longer holds this code"))
}

/// Pages that SUMMARY.md does not list.
fn unlisted(root: &Path, pages: &[PathBuf]) -> Result<Vec<String>> {
    let summary = Path::new("docs/SUMMARY.md");
    let listed: Vec<PathBuf> =
        links(&read(root, summary)?).iter().map(|link| target(summary, &link.target)).collect();
    let outside = ["README.md", "docs/SUMMARY.md", "docs/adr/0000-template.md"].map(PathBuf::from);
    let missing = pages.iter().filter(|page| !outside.contains(page) && !listed.contains(page));
    Ok(missing.map(|page| format!("docs/SUMMARY.md: {} is not listed", page.display())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with one page and one source file.
    fn tree(test: &str, page: &str) -> (PathBuf, Vec<String>) {
        let root = std::env::temp_dir().join(format!("xtask-book-{}-{test}", std::process::id()));
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("README.md"), "# It\n").unwrap();
        fs::write(root.join("a.rs"), "//! A.\nlet delta = r + v;\nlet x = 1;\nlet x = 1;\n").unwrap();
        fs::write(root.join("docs/page.md"), page).unwrap();
        fs::write(root.join("docs/SUMMARY.md"), "[Page](page.md)\n").unwrap();
        let found = findings(&root).unwrap();
        (root, found)
    }

    #[track_caller]
    fn finds(test: &str, page: &str, words: &str) {
        let (root, found) = tree(test, page);
        fs::remove_dir_all(root).unwrap();
        assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
    }

    #[test]
    fn links_headings_and_lines_that_are_gone_are_found() {
        finds("a", "[x](nowhere.md)", "page.md:1: `nowhere.md` leads nowhere");
        finds("b", "# One\n[x](#two)", "no such heading");
        finds("c", "[`let delta = r + v;`](../a.rs#L7)", "is line 2 now");
        finds("d", "[`let gamma`](../a.rs#L2)", "no line holds");
        finds("e", "[`let x = 1;`](../a.rs#L1)", "lines [3, 4]");
        finds("f", "```rust\nlet y;\n```", "name the file");
        finds("g", "```rust a.rs\nlet y;\n```", "no longer holds");
        let sound = "# The `one`, two\n[x](#the-one-two) [y](../README.md#it) [z](https://a.b/c)\n\
                     [`delta = r`](../a.rs#L2)\n```rust a.rs\n  let x = 1;\n```\n";
        let (root, found) = tree("h", sound);
        fs::remove_dir_all(root).unwrap();
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn line_numbers_are_corrected_and_an_unlisted_page_is_found() {
        let (root, _) = tree("i", "[`let delta = r + v;`](../a.rs#L7)");
        renumber(&root).unwrap();
        assert_eq!(
            fs::read_to_string(root.join("docs/page.md")).unwrap(),
            "[`let delta = r + v;`](../a.rs#L2)"
        );
        fs::write(root.join("docs/other.md"), "# Other\n").unwrap();
        let found = findings(&root).unwrap();
        fs::remove_dir_all(root).unwrap();
        assert_eq!(found, ["docs/SUMMARY.md: docs/other.md is not listed"]);
    }
}
