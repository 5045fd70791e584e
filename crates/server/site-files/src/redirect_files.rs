//! `site.redirect_files`: lists of old paths and their new targets, one per line.
//!
//! A line has two or three fields, separated by tabs (by commas in a file whose name ends in `.csv`): the old path,
//! perhaps with a query; the target; the status. Empty lines and lines that begin with `#` do not count. A field of CSV
//! may be in double quotes, on one line. Reading stops at the first error, which names file and line.
//!
//! Bounds: a million lines for all files of a site, 16 KiB for each line.

use super::{ReadFailure, UnusableFile, WatchedFile};
use site_rules::{AddedLine, KeyForm, RedirectFault, RedirectMap};
use std::io::{BufRead, BufReader, Error};
use std::path::{Path, PathBuf};

/// The maximum number of lines of all files.
const LINES_MAX: usize = 1_000_000;
/// The maximum length of a line in bytes.
const LINE_BYTES_MAX: u64 = 16 << 10;
/// The maximum number of repeated lines that are listed.
const LISTED_MAX: usize = 10;

/// The redirect files of a site, as far as they were read.
#[derive(Clone, Debug, Default)]
pub struct RedirectFiles {
    /// The files as they were when they were read, or when that was tried.
    watched: Vec<WatchedFile>,
    /// Warnings about lines that never count, because an earlier one has the same path.
    pub repeated: Vec<String>,
    /// The files by the numbers of their lines.
    pub places: RedirectPlaces,
    /// Files that cannot be used now: their lines from before count.
    pub unusable: Vec<UnusableFile>,
    /// A redirect of a line that browsers do not follow to an end. The reader of the configuration sets it.
    pub endless: Option<String>,
}

/// Redirect files by the numbers of their lines, which are counted through all files of a site.
#[derive(Clone, Debug, Default)]
pub struct RedirectPlaces {
    /// Each file with the number of the last line before it.
    files: Vec<(u32, PathBuf)>,
    lines: u32,
}

impl RedirectPlaces {
    /// The file of the line with this number, and the number of the line in the file.
    pub fn of(&self, number: u32) -> Option<(&Path, u32)> {
        let (before, path) = self.files.iter().rev().find(|(before, _)| *before < number)?;
        Some((path, number - before))
    }

    /// The message about a fault, with the file and the line that has a part in it.
    pub fn with_place(&self, fault: &RedirectFault) -> String {
        let message = &fault.message;
        match fault.line.and_then(|number| self.of(number)) {
            Some((path, line)) => format!("{message} ({}, line {line})", path.display()),
            None => message.clone(),
        }
    }

    /// The numbers of the lines of a file: the last one before it, and its last one.
    fn numbers_of(&self, path: &Path) -> Option<(u32, u32)> {
        let at = self.files.iter().position(|(_, file)| file == path)?;
        let last = self.files.get(at + 1).map_or(self.lines, |(before, _)| *before);
        Some((self.files[at].0, last))
    }

    fn begin_file(&mut self, path: &Path) {
        self.files.push((self.lines, path.to_owned()));
    }

    /// Counts a line, and returns its number.
    fn next_line(&mut self) -> u32 {
        self.lines = self.lines.saturating_add(1);
        self.lines
    }
}

impl RedirectFiles {
    /// The files, which are read again when they change.
    pub fn watched(&self) -> impl Iterator<Item = WatchedFile> {
        self.watched.iter().cloned()
    }

    /// Reads the files of these names, and their lines into a map. With `before`, which has lines and files as they
    /// were read, a file that cannot be used is no error: its lines from then count, but for repeated ones.
    ///
    /// # Errors
    /// A sentence with the name of the file, and the number of the line.
    pub fn read(
        names: &[String],
        form: &KeyForm,
        before: Option<(Option<&RedirectMap>, &RedirectFiles)>,
    ) -> Result<(RedirectMap, RedirectFiles), String> {
        let mut unusable: Vec<(WatchedFile, String)> = Vec::new();
        loop {
            let (mut map, mut files) = (RedirectMap::default(), RedirectFiles::default());
            let tried = |path: &Path| unusable.iter().find(|(file, _)| file.path() == path);
            let failure = names.iter().map(Path::new).find_map(|path| {
                let done = match before.zip(tried(path)) {
                    Some((before, (file, _))) => reuse(file, before, &mut map, &mut files),
                    None => read(path, form, &mut map, &mut files),
                };
                done.err().map(|failure| (path, failure))
            });
            let Some((path, failure)) = failure else {
                map.shrink();
                let named =
                    |(file, why): (WatchedFile, String)| UnusableFile { path: file.path, why };
                files.unusable = unusable.into_iter().map(named).collect();
                return Ok((map, files));
            };
            // A map cannot lose the lines before the error, so all files are read once more.
            if before.is_none() || tried(path).is_some() {
                return Err(format!("{}: {}", path.display(), failure.why));
            }
            unusable.push((WatchedFile::failed(path.to_owned(), &failure), failure.why));
        }
    }
}

/// Adds the lines that a file had before.
fn reuse(
    file: &WatchedFile,
    (lines, before): (Option<&RedirectMap>, &RedirectFiles),
    map: &mut RedirectMap,
    files: &mut RedirectFiles,
) -> Result<(), ReadFailure> {
    let failed = |why: String| ReadFailure { why, look: file.look };
    let Some((after, last)) = before.places.numbers_of(file.path()) else {
        return Err(failed("it was not read before".into()));
    };
    files.watched.push(file.clone());
    let begin = files.places.lines;
    files.places.begin_file(file.path());
    files.places.lines = begin.saturating_add(last - after);
    if let Some(lines) = lines {
        map.add_lines(lines, (after, last), begin).map_err(failed)?;
    }
    if map.len() > LINES_MAX {
        return Err(failed(format!("{LINES_MAX} lines at most for a site")));
    }
    Ok(())
}

/// Reads the lines of a file.
fn read(
    path: &Path,
    form: &KeyForm,
    map: &mut RedirectMap,
    files: &mut RedirectFiles,
) -> Result<(), ReadFailure> {
    let unread = |error: Error| ReadFailure::of_access(&error, path);
    let file = trusted_files::open(path).map_err(unread)?;
    let found = file.metadata().map_err(unread)?;
    files.watched.push(WatchedFile::of(path.to_owned(), &found));
    let (repeated, places) = (&mut files.repeated, &mut files.places);
    places.begin_file(path);
    let is_csv = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    let (mut lines, mut line) = (BufReader::with_capacity(64 << 10, file), Vec::new());
    for number in 1_u64.. {
        line.clear();
        let mut limited = std::io::Read::take(&mut lines, LINE_BYTES_MAX);
        let length = limited.read_until(b'\n', &mut line).map_err(unread)?;
        if length == 0 {
            break;
        }
        map.begin_line(places.next_line());
        let wrong =
            |why: &str| Err(ReadFailure::of_content(format!("line {number}: {why}"), &found));
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
        done.map(|()| (map, files.repeated)).map_err(|failure| failure.why)
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
        let error =
            RedirectFiles::read(&["/nowhere".into()], &form(), None).expect_err("no such file");
        assert!(error.starts_with("/nowhere: "), "{error}");
    }

    #[test]
    fn a_line_is_found_again_by_its_number() {
        let file = |name: &str, text: &str| {
            let name = format!("pagewell-places-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        };
        let names =
            [file("a.tsv", "# old\n\n/a\t/b\n"), file("b.csv", ""), file("c.csv", "/c,/d\n")];
        let (map, files) = RedirectFiles::read(&names, &form(), None).expect("fine");
        names.iter().for_each(|name| std::fs::remove_file(name).expect("removed"));
        let of = |number: u32| {
            let place = files.places.of(number);
            place.map(|(path, line)| (path.display().to_string(), line))
        };
        assert_eq!(map.len(), 2);
        assert_eq!((of(0), of(1)), (None, Some((names[0].clone(), 1))));
        assert_eq!((of(3), of(4)), (Some((names[0].clone(), 3)), Some((names[2].clone(), 1))));
    }

    #[test]
    fn a_file_that_breaks_keeps_its_lines_and_stops_no_other() {
        let path = |name: &str| {
            let name = format!("pagewell-kept-{}-{name}", std::process::id());
            std::env::temp_dir().join(name).display().to_string()
        };
        let names = [path("a.tsv"), path("b.tsv")];
        let write = |at: usize, text: &str| std::fs::write(&names[at], text).expect("written");
        write(0, "/a\t/b\n");
        write(1, "# old\n/c\t/d\n/e\t/f\n");
        let (map, files) = RedirectFiles::read(&names, &form(), None).expect("fine");
        assert!(files.unusable.is_empty());
        write(0, "/a\t/b\n/g\t/h\n");
        write(1, "/i\t/j\nwrong");
        RedirectFiles::read(&names, &form(), None).expect_err("the second line");
        let before = Some((Some(&map), &files));
        let (new, kept) = RedirectFiles::read(&names, &form(), before).expect("lines from before");
        assert_eq!(new.len(), 4, "two of the first file, two of the second as it was");
        let unusable = kept.unusable.iter().map(|file| file.path.display().to_string());
        assert_eq!(unusable.collect::<Vec<_>>(), [names[1].clone()]);
        assert!(kept.unusable[0].why.starts_with("line 2: "), "{}", kept.unusable[0].why);
        let place = kept.places.of(4).map(|(path, line)| (path.display().to_string(), line));
        assert_eq!(place, Some((names[1].clone(), 2)));
        let fault = |line| RedirectFault { message: "it never ends".into(), line };
        let text = |line| kept.places.with_place(&fault(line));
        assert_eq!(text(Some(4)), format!("it never ends ({}, line 2)", names[1]));
        assert_eq!(text(None), "it never ends");
        assert_eq!(kept.places.lines, 5);
        assert!(kept.watched.iter().all(|file| !file.is_changed()), "each is read once");
        // It breaks again, on top of lines that were kept; then it is mended.
        let before = Some((Some(&new), &kept));
        let (again, _) = RedirectFiles::read(&names, &form(), before).expect("lines from before");
        assert_eq!(again.len(), 4);
        write(1, "/i\t/j\n");
        let (mended, files) = RedirectFiles::read(&names, &form(), before).expect("fine");
        names.iter().for_each(|name| std::fs::remove_file(name).expect("removed"));
        assert_eq!((mended.len(), files.unusable.len()), (3, 0));
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
