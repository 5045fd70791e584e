//! Redirect files with many lines: their memory, and the most lines of a site. The only test of its process, because it
//! reads the memory of the process.

use site_files::RedirectFiles;
use site_rules::{KeyForm, raw};
use std::fmt::Write as _;
use std::fs;

/// The most memory for 100,000 lines of 85 bytes, in KiB.
const KIB_MAX: u64 = 20 << 10;

/// The memory of the process in KiB, without files.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("RssAnon")).expect("a line");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("KiB")
}

#[test]
fn many_lines_need_little_memory_and_too_many_are_refused() {
    let form = KeyForm::read(&raw::Keys::default()).expect("defaults");
    let path = std::env::temp_dir().join(format!("redirect-lines-{}.tsv", std::process::id()));
    let names = [path.display().to_string()];
    let mut text = String::new();
    for at in 0..100_000 {
        let _ = writeln!(
            text,
            "/archive/2019/{at}/an-old-title-of-a-page.html\t/blog/{at}/a-new-title/"
        );
    }
    fs::write(&path, &text).expect("written");
    // The text stays, so that the map gets none of its memory.
    let before = resident();
    let (map, _) = RedirectFiles::read(&names, &form).expect("fine");
    let after = resident();
    assert!(text.len() > 8_000_000 && map.len() == 100_000);
    assert!(after - before < KIB_MAX, "{} KiB", after - before);
    drop(map);

    text.clear();
    for at in 0..=1_000_000 {
        let _ = writeln!(text, "/{at}\t/");
    }
    fs::write(&path, &text).expect("written");
    let refused = RedirectFiles::read(&names, &form).expect_err("one line too many");
    assert!(refused.contains("line 1000001: 1000000 lines at most"), "{refused}");
    fs::remove_file(&path).expect("it is there");
}
