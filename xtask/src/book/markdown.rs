//! As much of Markdown as the book's pages need: links, headings, fenced code.

/// `[text](target)`.
pub struct Link {
    /// What is shown.
    pub text: String,
    /// Where it leads.
    pub target: String,
    /// Its line, from 1.
    pub line: usize,
}

impl Link {
    /// The code that is shown, if it is code. A bar in a table's cell is written `\|`.
    pub fn code(&self) -> Option<String> {
        Some(self.text.strip_prefix('`')?.strip_suffix('`')?.replace("\\|", "|"))
    }
}

/// A block of code.
pub struct Fence {
    /// The first word after the fence.
    pub language: String,
    /// The second.
    pub file: Option<String>,
    /// The code.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
}

/// Lines outside fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        (!inside && !fence).then_some((i + 1, line))
    })
}

/// Every link outside fenced code.
pub fn links(text: &str) -> Vec<Link> {
    prose(text).flat_map(|(line, words)| links_in(words, line)).collect()
}

fn links_in(words: &str, line: usize) -> Vec<Link> {
    let mut found = vec![];
    let mut from = 0;
    while let Some(middle) = words[from..].find("](").map(|at| from + at) {
        let end = words[middle..].find(')').map(|at| middle + at);
        if let (Some(open), Some(end)) = (opening(words, middle), end) {
            let target = words[middle + 2..end].to_owned();
            found.push(Link { text: words[open + 1..middle].to_owned(), target, line });
        }
        from = middle + 2;
    }
    found
}

/// The bracket that the one at `close` closes; code may hold pairs of its own.
fn opening(words: &str, close: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, letter) in words[..close].char_indices().rev() {
        match letter {
            ']' => depth += 1,
            '[' if depth == 0 => return Some(at),
            '[' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The anchors of a page's headings, as GitHub and mdbook make them.
pub fn headings(text: &str) -> Vec<String> {
    let titles = prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| line.trim_start_matches('#').trim());
    titles.map(anchor).collect()
}

fn anchor(title: &str) -> String {
    let kept = title.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// Every block of fenced code.
pub fn fences(text: &str) -> Vec<Fence> {
    let mut found: Vec<Fence> = vec![];
    let mut inside = false;
    for (i, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), inside) {
            (Some(words), false) => {
                let mut words = words.split_whitespace();
                let language = words.next().unwrap_or_default().to_owned();
                found.push(Fence {
                    language,
                    file: words.next().map(str::to_owned),
                    text: String::new(),
                    line: i + 1,
                });
                inside = true;
            }
            (Some(_), true) => inside = false,
            (None, true) => {
                if let Some(fence) = found.last_mut() {
                    fence.text += line;
                    fence.text.push('\n');
                }
            }
            (None, false) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_may_hold_brackets_in_its_code_and_stands_outside_fences() {
        assert_eq!(links("| [`f(\\|x\\| x)`](b.rs#L3) |")[0].code().as_deref(), Some("f(|x| x)"));
        let found = links("a [`x[t] + y[t]`](b.rs#L3) and [c](d.md)\n```\n[no](e.md)\n```\n");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].code().as_deref(), found[0].target.as_str()), (Some("x[t] + y[t]"), "b.rs#L3"));
        assert_eq!((found[1].code(), found[1].line), (None, 1));
    }

    #[test]
    fn headings_become_anchors() {
        assert_eq!(headings("# The price: β\n## `a_b` — two\n"), ["the-price-β", "a_b--two"]);
    }
}
