//! Resident memory: idle, and for each page beyond its content; as the system counts it, and as the
//! store does. The two differ by what the allocator and everything but the store take. Codings are made
//! off the way of visitors: what is full is looked at when they are done.

use super::super::figures::shown_bytes;
use super::super::{Amount, Found, told};
use super::{PAGE_BYTES, Subject};
use harness::PrivateDir;
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;

/// Measures: pages alone, and with their codings beside them.
///
/// # Errors
/// What did not start; pages that were not stored.
pub fn memory(amount: &Amount, binary: &Path) -> Result<Found, String> {
    let pages: u32 = if amount.short { 10_000 } else { 200_000 };
    let title = "Memory";
    let mut text = format!(
        "### {title}\n\n| | idle, one page | {pages} pages of {PAGE_BYTES} bytes | resident for each beyond its \
         content | counted by the store beyond it |\n|---|---|---|---|---|\n"
    );
    let dir = PrivateDir::temporary("memory").map_err(told)?;
    let mut figures = serde_json::Map::new();
    for (name, make) in [("without codings", "[]"), ("with codings", "[\"br\", \"gzip\"]")] {
        let file = dir.path().join("pagewell.toml");
        std::fs::write(&file, format!("memory = \"4G\"\n[codings]\nmake = {make}\n"))
            .map_err(|error| format!("bench: {}: {error}", file.display()))?;
        let subject = Subject::start_with(binary, &["--config", &file.display().to_string()])?;
        let found = pages_of(&subject, pages)?;
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} bytes | {} bytes |",
            shown_bytes(found.idle),
            shown_bytes(found.full),
            found.resident,
            found.counted
        );
        figures.insert(
            name.to_owned(),
            json!({
                "idle_bytes": found.idle,
                "full_bytes": found.full,
                "resident_beyond_content_bytes": found.resident,
                "counted_beyond_content_bytes": found.counted,
            }),
        );
    }
    Ok(Found {
        name: "memory".into(),
        text,
        figures: json!({ "title": title, "pages": pages, "ways": figures }),
    })
}

struct Taken {
    idle: u64,
    full: u64,
    resident: i64,
    counted: i64,
}

fn pages_of(subject: &Subject, pages: u32) -> Result<Taken, String> {
    subject.fill(1)?;
    subject.let_codings_finish()?;
    let idle = subject.pagewell.rss_bytes();
    subject.fill(pages)?;
    subject.let_codings_finish()?;
    let full = subject.pagewell.rss_bytes();
    let beyond = |bytes: u64| i64::try_from(bytes / u64::from(pages)).unwrap_or(0) - PAGE_CONTENT;
    let counted = beyond(subject.stat("memory_bytes")?);
    Ok(Taken { idle, full, resident: beyond(full.saturating_sub(idle)), counted })
}

const PAGE_CONTENT: i64 = PAGE_BYTES as i64;
