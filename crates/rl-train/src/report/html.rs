//! Small pieces of HTML. Whatever comes from a run is escaped here and nowhere else.

use std::fmt::Write as _;

/// `text` as it may stand between tags and in attributes.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters have no place in HTML, and some of them turn text around.
            letter if letter.is_control() && letter != '\n' && letter != '\t' => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// Our own sentences: what stands between backticks is code.
pub fn prose(text: &str) -> String {
    let parts = escaped(text);
    let mut out = String::with_capacity(parts.len());
    for (i, part) in parts.split('`').enumerate() {
        match i {
            0 => {}
            i if i % 2 == 1 => out += "<code>",
            _ => out += "</code>",
        }
        out += part;
    }
    if parts.matches('`').count() % 2 == 1 { out + "</code>" } else { out }
}

/// A table with a heading in each column and in each row.
pub fn table(caption: &str, head: &[String], rows: &[Vec<String>]) -> String {
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>",
        escaped(caption)
    );
    for cell in head {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escaped(cell));
    }
    out += "</tr></thead><tbody>";
    for row in rows {
        out += "<tr>";
        for (i, cell) in row.iter().enumerate() {
            let cell = escaped(cell);
            let _ = match i {
                0 => write!(out, "<th scope=\"row\">{cell}</th>"),
                _ => write!(out, "<td>{cell}</td>"),
            };
        }
        out += "</tr>";
    }
    out + "</tbody></table></div>"
}

/// Something that opens on demand.
pub fn details(summary: &str, inner: &str) -> String {
    format!("<details><summary>{}</summary>{inner}</details>", escaped(summary))
}

/// A list of terms.
pub fn terms(pairs: &[(String, String)]) -> String {
    let mut out = "<dl>".to_owned();
    for (term, value) in pairs {
        let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escaped(term), escaped(value));
    }
    out + "</dl>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_run_becomes_markup() {
        let text = "<script>alert('x\"&')</script>\u{0}\u{202e}";
        assert_eq!(
            escaped(text),
            "&lt;script&gt;alert(&#39;x&quot;&amp;&#39;)&lt;/script&gt;\u{fffd}\u{fffd}"
        );
        assert_eq!(prose("set `a<b` or `c"), "set <code>a&lt;b</code> or <code>c</code>");
        let table = table("<b>", &["<i>".into()], &[vec!["<u>".into(), "<s>".into()]]);
        assert!(["<b>", "<i>", "<u>", "<s>"].iter().all(|tag| !table.contains(tag)));
        assert!(table.contains("<th scope=\"row\">&lt;u&gt;</th><td>&lt;s&gt;</td>"));
    }
}
