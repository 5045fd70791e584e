//! The configuration language of Apache: one directive on a line, sections in angle brackets, quotes, continued
//! lines.
//!
//! `Include` stays; the translator reports it.

use crate::source::{
    ConfigurationError, ConfigurationFile, DEPTH_MAX, Directive, SourceLine, Sources,
};

/// Reads a file.
pub(crate) fn read(
    file: &ConfigurationFile,
    sources: &mut Sources,
) -> Result<Vec<Directive>, ConfigurationError> {
    let index = sources.add(file)?;
    // The open sections, each with the directives before its own.
    let mut open: Vec<(Directive, Vec<Directive>)> = Vec::new();
    let mut all = Vec::new();
    for (line, text) in lines(&file.text) {
        let at = SourceLine { file: index, line };
        let Some(words) = words(&text).map_err(|why| sources.error(at, &why))? else { continue };
        for _ in &words {
            sources.count(at)?;
        }
        let Some((first, rest)) = words.split_first() else { continue };
        let name = first.to_ascii_lowercase();
        if let Some(closed) = name.strip_prefix("</") {
            let Some((mut section, before)) = open.pop() else {
                return Err(sources.error(at, &format!("{name}> closes no section")));
            };
            if section.name[1..] != *closed.trim_end_matches('>') {
                return Err(sources.error(at, &format!("{name} closes {}>", section.name)));
            }
            let inner = std::mem::replace(&mut all, before);
            section.block = Some(inner);
            all.push(section);
            continue;
        }
        let directive = Directive { name, words: rest.to_vec(), block: None, at };
        if directive.name.starts_with('<') {
            if open.len() >= DEPTH_MAX {
                return Err(sources.error(at, "sections are nested too deeply"));
            }
            open.push((directive, std::mem::take(&mut all)));
        } else {
            all.push(directive);
        }
    }
    match open.pop() {
        Some((section, _)) => {
            let message = format!("the section {}> is not closed", section.name);
            Err(sources.error(section.at, &message))
        }
        None => Ok(all),
    }
}

/// The lines with their numbers; a line that ends with a backslash continues.
fn lines(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut continued = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start_matches('\u{feff}').trim_end();
        let (line, continues) = match line.strip_suffix('\\') {
            Some(line) if !line.ends_with('\\') => (line, true),
            _ => (line, false),
        };
        match all.last_mut() {
            Some((_, last)) if continued => {
                last.push(' ');
                last.push_str(line);
            }
            _ => all.push((index + 1, line.to_owned())),
        }
        continued = continues;
    }
    all
}

/// The words of a line; `None` for a comment. The brackets of a section are removed, except for the first.
fn words(line: &str) -> Result<Option<Vec<String>>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = match line.strip_prefix('<') {
        Some(_) => line.strip_suffix('>').ok_or("a section without its >")?,
        None => line,
    };
    let (mut words, mut rest): (Vec<String>, _) = (Vec::new(), line);
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, behind) = match first {
            '"' | '\'' => quoted(&rest[1..], first)?,
            _ => plain(rest),
        };
        // mod_rewrite reads its own words, and keeps each backslash.
        let is_rewrite = words.first().is_some_and(|name| is_rewrite(name));
        words.push(if is_rewrite { word } else { word.replace("\\\\", "\\") });
        rest = behind;
    }
    Ok(Some(words))
}

fn is_rewrite(name: &str) -> bool {
    name.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case("rewrite"))
}

/// A word without quotes, in which a backslash keeps a space, and the rest of the line.
fn plain(text: &str) -> (String, &str) {
    let mut is_kept = false;
    let end = text.find(|c: char| {
        let ends = c.is_whitespace() && !is_kept;
        is_kept = c == '\\' && !is_kept;
        ends
    });
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (word.to_owned(), rest)
}

/// A quoted word, in which a backslash keeps a quote, and the rest of the line.
fn quoted(text: &str, quote: char) -> Result<(String, &str), String> {
    let (mut word, mut is_kept) = (String::new(), false);
    for (at, c) in text.char_indices() {
        if c == quote && !is_kept {
            return Ok((word, &text[at + 1..]));
        }
        if c == quote {
            word.pop();
        }
        word.push(c);
        is_kept = c == '\\' && !is_kept;
    }
    Err(format!("no {quote} at the end of a quoted word"))
}
