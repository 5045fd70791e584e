//! `site.redirect_files`: lists of old paths and their new targets, one per line.
//!
//! A line has two or three fields, separated by tabs (by commas in a file whose name ends in `.csv`): the old path,
//! perhaps with a query; the target; the status. Empty lines and lines that begin with `#` do not count. A field of CSV
//! may be in double quotes, on one line. Reading stops at the first error, which names file and line.
//!
//! Bounds: a million lines for all files of a site, 16 KiB for each line.

use super::WatchedFile;
use site_rules::{AddedLine, KeyForm, RedirectMap};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The maximum number of lines of all files.
const LINES_MAX: usize = 1_000_000;
/// The maximum length of a line in bytes.
const LINE_BYTES_MAX: u64 = 16 << 10;
/// The maximum number of repeated lines that are listed.
const LISTED_MAX: usize = 10;

/// The redirect files of a site, as far as they were read.
#[derive(Clone, Debug, Default)]
pub struct RedirectFiles {
    /// The files as they were when they were read.
    pub watched: Vec<WatchedFile>,
    /// Warnings about lines that never count, because an earlier one has the same path.
    pub repeated: Vec<String>,
}

impl RedirectFiles {
    /// Reads the files of these names, and their lines into a map.
    ///
    /// # Errors
    /// A sentence with the name of the file, and the number of the line.
    pub fn read(names: &[String], form: &KeyForm) -> Result<(RedirectMap, RedirectFiles), String> {
        let (mut map, mut files) = (RedirectMap::default(), RedirectFiles::default());
        for name in names {
            read(Path::new(name), form, &mut map, &mut files)
                .map_err(|error| format!("{name}: {error}"))?;
        }
        map.shrink();
        Ok((map, files))
    }
}

/// Reads the lines of a file.
fn read(
    path: &Path,
    form: &KeyForm,
    map: &mut RedirectMap,
    files: &mut RedirectFiles,
) -> Result<(), String> {
    let file = trusted_files::open(path).map_err(|error| error.to_string())?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    files.watched.push(WatchedFile::of(path.to_owned(), &found));
    let repeated = &mut files.repeated;
    let is_csv = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    let (mut lines, mut line) = (BufReader::with_capacity(64 << 10, file), Vec::new());
    for number in 1_u64.. {
        line.clear();
        let mut limited = std::io::Read::take(&mut lines, LINE_BYTES_MAX);
        let length = limited.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if length == 0 {
            break;
        }
        let wrong = |why: &str| Err(format!("line {number}: {why}"));
        if length as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            return wrong(&format!("{LINE_BYTES_MAX} bytes at most"));
        }
        let Ok(text) = str::from_utf8(&line) else { return wrong("it is not UTF-8") };
        // Spreadsheets begin a file with a byte order mark.
        let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text };
        let text = text.trim_end_matches(['\r', '\n']);
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        if map.len() == LINES_MAX {
            return wrong(&format!("{LINES_MAX} lines at most for a site"));
        }
        match add(text, is_csv, form, map) {
            Ok(AddedLine::Added) => {}
            Ok(AddedLine::Repeated) if repeated.len() < LISTED_MAX => repeated.push(format!(
                "{}, line {number}: never counts, because an earlier line has the same path",
                path.display()
            )),
            Ok(AddedLine::Repeated) => {}
            Err(error) => return wrong(&error),
        }
    }
    Ok(())
}

fn add(
    text: &str,
    is_csv: bool,
    form: &KeyForm,
    map: &mut RedirectMap,
) -> Result<AddedLine, String> {
    let of_csv = if is_csv { csv(text)? } else { Vec::new() };
    let fields: Vec<&str> = if is_csv {
        of_csv.iter().map(|field| field.trim()).collect()
    } else {
        text.split('\t').map(str::trim).collect()
    };
    match *fields {
        [old, target] => map.add(form, old, target, None),
        [old, target, status] => map.add(form, old, target, Some(status)),
        _ => {
            let separator = if is_csv { "commas" } else { "tabs" };
            Err(format!(
                "write the old path, the target, and perhaps a status, separated by {separator}"
            ))
        }
    }
}

/// The fields of a line of CSV (RFC 4180 section 2): `""` in a quoted field is one quote.
fn csv(line: &str) -> Result<Vec<String>, String> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    if is_quoted { Err("a quote is not closed".into()) } else { Ok(fields) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn form() -> KeyForm {
        KeyForm::read(&site_rules::raw::Keys::default()).expect("defaults")
    }

    /// Reads a file with this text.
    fn of(name: &str, text: &str) -> Result<(RedirectMap, Vec<String>), String> {
        let name = format!("pagewell-redirects-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("written");
        let (mut map, mut files) = (RedirectMap::default(), RedirectFiles::default());
        let done = read(&path, &form(), &mut map, &mut files);
        std::fs::remove_file(&path).expect("removed");
        done.map(|()| (map, files.repeated))
    }

    #[test]
    fn lines_are_read_and_wrong_ones_refused_with_their_number() {
        let (map, repeated) =
            of("a.tsv", "\u{feff}/a\t/b\r\n\n# old\n/c\t/d\t302\n/a\t/e\n/f\t\t410").expect("fine");
        assert_eq!((map.len(), repeated.len()), (3, 1));
        assert!(repeated[0].contains("line 5"), "{repeated:?}");
        let (map, _) = of("a.CSV", "\"/a,b\",\"/c\"\"\"\n").map_err(|_| ()).unwrap_or_default();
        assert!(map.is_empty(), "a quote in a target is an error");
        let (map, _) = of("b.csv", "\"/a,b\", /c\n/d,/e,308\n").expect("fine");
        assert_eq!(map.len(), 2);
        for (name, text, part) in [
            ("c.tsv", "/a\t/b\n/c /d\n", "line 2: write the old path"),
            ("d.tsv", "old\tnew", "line 1: \"old\""),
            ("e.csv", "/a,\"/b", "not closed"),
            ("f.tsv", "/a\t/b\t200", "the status is"),
            ("g.tsv", &"a".repeat(17 << 10), "bytes at most"),
        ] {
            let error = of(name, text).map(|_| ()).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
        let error = RedirectFiles::read(&["/nowhere".into()], &form()).expect_err("no such file");
        assert!(error.starts_with("/nowhere: "), "{error}");
    }

    /// Prints the time and the memory of many lines: `cargo test -p site-files --release -- --ignored --nocapture lines`.
    #[test]
    #[ignore = "a measurement"]
    #[expect(clippy::disallowed_methods, reason = "it measures")]
    fn many_lines() {
        for lines in [100_000, 1_000_000] {
            let line = |at| {
                format!("/archive/2019/{at}/an-old-title-of-a-page.html\t/blog/{at}/a-new-title/\n")
            };
            let text: String = (0..lines).map(line).collect();
            let resident = || {
                let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
                let line = status.lines().find(|line| line.starts_with("RssAnon")).expect("a line");
                line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("KiB")
            };
            let before = resident();
            let begin = Instant::now();
            let (map, _) = of("many.tsv", &text).expect("fine");
            let took = begin.elapsed();
            println!("{} lines: {took:?}, {} KiB more", map.len(), resident() - before);
        }
    }
}
