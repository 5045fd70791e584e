//! The memory of redirect files: that of their texts, and at most 36 bytes for each line.
//!
//! There is one test in this program, because the allocator counts the memory of the whole process.

use counting_allocator::{Counting, held_bytes};
use site_files::RedirectFiles;
use site_rules::{KeyForm, raw};
use std::fmt::Write;

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most lines of a site.
const LINES: usize = 1_000_000;
/// Beside its texts, a line has 12 bytes, and at most three places of 8 bytes in the table.
const LINE_BYTES_MAX: usize = 36;

#[test]
fn a_million_lines_take_the_memory_of_their_texts() {
    let form = KeyForm::read(&raw::Keys::default()).expect("defaults");
    let path = std::env::temp_dir().join(format!("pagewell-lines-{}.tsv", std::process::id()));
    let texts = {
        let mut text = String::new();
        for at in 0..LINES {
            writeln!(text, "/archive/2019/{at}/an-old-title.html\t/blog/{at}/a-new-title/")
                .expect("a string grows");
        }
        std::fs::write(&path, &text).expect("written");
        text.len()
    };
    let names = [path.display().to_string()];
    let before = held_bytes();
    let (map, files) = RedirectFiles::read(&names, &form, None).expect("it is read");
    let held = held_bytes() - before;
    std::fs::remove_file(&path).expect("removed");
    assert_eq!((map.len(), files.repeated.len()), (LINES, 0));
    let most = texts + LINES * LINE_BYTES_MAX;
    println!("{held} bytes for {LINES} lines of {texts} bytes");
    assert!((texts / 2..=most).contains(&held), "{held} bytes, at most {most}");
}
