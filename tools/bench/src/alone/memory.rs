//! Resident memory: idle, and for each page beyond its content; as the system counts it, and as the
//! store does. The two differ by what the allocator and everything but the store take. Codings are made
//! off the way of visitors: what is full is looked at when they are done.

use super::super::figures::shown_bytes;
use super::super::{Amount, CaseResult, error_text};
use super::{PAGE_BYTES, Subject, target};
use harness::{Client, PrivateDir};
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;

/// Measures: pages alone, a hundred thousand and a million, and with their codings beside them.
///
/// # Errors
/// A server that did not start; pages that were not stored.
pub fn memory(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let [some, many] = if amount.short { [2000, 10_000] } else { [100_000, 1_000_000] };
    let title = "Memory";
    let mut text = format!(
        "### {title}\n\n| Stored | Idle, one page | Full | Resident for each page beyond its {PAGE_BYTES} bytes of content | And \
         beyond its header lines | Counted by the store beyond its content |\n|---|---|---|---|---|---|\n"
    );
    let dir = PrivateDir::temporary("memory").map_err(error_text)?;
    let mut figures = Vec::new();
    for (pages, make) in [(some, "[]"), (many, "[]"), (some, "[\"br\", \"gzip\"]")] {
        let file = dir.path().join("pagewell.toml");
        let config = format!(
            "memory = \"8G\"\n[codings]\nmake = {make}\n[limits]\ncoding_queue = 1000000\n"
        );
        std::fs::write(&file, config)
            .map_err(|error| format!("bench: {}: {error}", file.display()))?;
        let subject = Subject::start_with(binary, &["--config", &file.display().to_string()])?;
        let found = pages_of(&subject, pages, make)?;
        let name = match make {
            "[]" => format!("{pages} pages"),
            _ => format!("{pages} pages, also compressed"),
        };
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} bytes | {} bytes | {} bytes |",
            shown_bytes(found.idle),
            shown_bytes(found.full),
            found.resident,
            found.resident - found.lines,
            found.counted
        );
        figures.push(json!({
            "name": name,
            "pages": pages,
            "idle_bytes": found.idle,
            "full_bytes": found.full,
            "header_lines_bytes": found.lines,
            "resident_beyond_content_bytes": found.resident,
            "counted_beyond_content_bytes": found.counted,
        }));
    }
    Ok(CaseResult {
        name: "memory".into(),
        text,
        figures: json!({ "title": title, "ways": figures }),
    })
}

struct MemoryUse {
    idle: u64,
    full: u64,
    lines: i64,
    resident: i64,
    counted: i64,
}

fn pages_of(subject: &Subject, pages: u32, codings: &str) -> Result<MemoryUse, String> {
    subject.fill(1)?;
    let (idle, one) = (subject.pagewell.rss_bytes(), subject.stat("memory_bytes")?);
    subject.fill(pages)?;
    if codings != "[]" {
        // They are made of what is asked for again by somebody who accepts them.
        subject.ask_for_all(pages, &[("Accept-Encoding", "br, gzip")])?;
        subject.let_codings_finish()?;
    }
    let full = subject.pagewell.rss_bytes();
    let beyond = |bytes: u64| i64::try_from(bytes / u64::from(pages)).unwrap_or(0) - PAGE_CONTENT;
    let counted = beyond(subject.stat("memory_bytes")?.saturating_sub(one));
    let resident = beyond(full.saturating_sub(idle));
    Ok(MemoryUse { idle, full, lines: lines_of(subject)?, resident, counted })
}

/// The bytes of a page's header lines, without those that are made for each hit.
fn lines_of(subject: &Subject) -> Result<i64, String> {
    let page = Client::new(subject.address).get(&target(0));
    let page = page.map_err(|error| format!("bench: {error}"))?;
    let kept = page.headers.iter().filter(|(name, _)| {
        !name.eq_ignore_ascii_case("age") && !name.eq_ignore_ascii_case("cache-status")
    });
    let bytes = kept.map(|(name, value)| name.len() + value.len() + ": \r\n".len()).sum::<usize>();
    i64::try_from(bytes).map_err(|error| format!("bench: {error}"))
}

const PAGE_CONTENT: i64 = PAGE_BYTES as i64;
