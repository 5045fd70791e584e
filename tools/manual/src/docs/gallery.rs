//! The table of small applications in the page about tests, made from the file that the tests read.
//!
//! It stands between two marks in a page that is otherwise written by hand.

use std::fmt::Write as _;

/// The page with the table.
pub const PAGE: &str = "docs/internals/freshness-tests.md";
/// The file with the applications.
pub const GALLERY: &str = "tests/audit/gallery.txt";

const BEGIN: &str = "<!-- Made by `cargo xtask gen-docs` from tests/audit/gallery.txt -->\n";
const END: &str = "<!-- end of the table -->";

/// The applications with one class and cause.
struct SameFault<'g> {
    class: &'g str,
    cause: &'g str,
    /// The most requests until one of them was found.
    requests: u32,
    names: Vec<&'g str>,
}

/// Returns the page with its table as the file says.
///
/// # Errors
/// A mark is missing, a line of the file has fewer than five cells, or a fault has no number of requests.
pub fn page(written: &str, gallery: &str) -> Result<String, String> {
    let missing = || format!("{PAGE}: no {}", BEGIN.trim());
    let begin = written.find(BEGIN).ok_or_else(missing)? + BEGIN.len();
    let end = begin + written[begin..].find(END).ok_or_else(missing)?;
    Ok([&written[..begin], &table(gallery)?, &written[end..]].concat())
}

fn table(gallery: &str) -> Result<String, String> {
    let (mut faults, mut right) = (Vec::<SameFault<'_>>::new(), 0);
    for line in gallery.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let cells: Vec<&str> = line.splitn(5, '|').map(str::trim).collect();
        let [marked, class, cause, within, _] = cells[..] else {
            return Err(format!("{GALLERY}: not five cells: {line}"));
        };
        let name = marked.trim_start_matches(|letter: char| !letter.is_alphabetic());
        let cause = if cause.is_empty() { "only an audit judges it" } else { cause };
        if class == "right" {
            right += 1;
            continue;
        }
        let requests: u32 =
            within.parse().map_err(|_| format!("{GALLERY}: no number of requests: {line}"))?;
        match faults.iter_mut().find(|known| (known.class, known.cause) == (class, cause)) {
            Some(known) => {
                known.names.push(name);
                known.requests = known.requests.max(requests);
            }
            None => faults.push(SameFault { class, cause, requests, names: vec![name] }),
        }
    }
    let mut table = String::from(
        "| Class | Cause in the report | Found within | Applications |\n|---|---|---|---|\n",
    );
    for SameFault { class, cause, requests, names } in faults {
        let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(table, "| `{class}` | {cause} | {requests} requests | {names} |");
    }
    let _ = writeln!(table, "| none | | | {right} applications without a fault |");
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_with_one_class_and_cause_share_a_row() {
        let gallery = "# a comment\n*-one | leak | | 9 | a | b\n  two | leak | field `x` | 4 | c\n* three | leak | field `x` | 5 | d\n  four | right | | | e\n";
        let table = table(gallery).expect("a table");
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| `leak` | only an audit judges it | 9 requests | `one` |",
                "| `leak` | field `x` | 5 requests | `two`, `three` |",
                "| none | | | 1 applications without a fault |",
            ]
        );
        for wrong in ["one | leak", "one | leak | | | a"] {
            assert!(super::table(wrong).is_err(), "{wrong}");
        }
        assert!(page("no mark", gallery).is_err());
    }
}
