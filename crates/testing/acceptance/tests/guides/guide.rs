//! A guide of the manual: its fenced blocks with their sections, each taken once and in order.
//!
//! Only what a test of its commands needs of Markdown is understood: headings, fenced blocks, and code in a
//! line. Dropping a guide with blocks that were not taken fails the test.

use std::fs;
use std::path::Path;

/// A fenced block.
struct Block {
    section: String,
    language: String,
    text: String,
    line: usize,
    is_taken: bool,
}

/// A guide whose blocks are taken one after the other.
pub struct Guide {
    name: String,
    text: String,
    blocks: Vec<Block>,
}

impl Guide {
    /// Reads a guide of `docs/guide`.
    pub fn open(name: &str) -> Guide {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/guide").join(name);
        let text = fs::read_to_string(path).expect("a guide");
        let blocks = blocks(&text);
        Guide { name: name.to_owned(), text, blocks }
    }

    /// The next block of a section, which must be in this language.
    pub fn next(&mut self, section: &str, language: &str) -> String {
        let name = &self.name;
        let next = self.blocks.iter_mut().find(|block| block.section == section && !block.is_taken);
        let block = next.unwrap_or_else(|| panic!("{name}: no further block in {section:?}"));
        let found = (&*block.language, block.line);
        assert_eq!(found.0, language, "{name}:{}: another block is expected", found.1);
        block.is_taken = true;
        block.text.clone()
    }

    /// Takes the next block of a section without running it, for this reason.
    pub fn not_run(&mut self, section: &str, language: &str, reason: &str) {
        assert!(reason.split(' ').count() > 3, "a sentence");
        self.next(section, language);
    }

    /// Ends without the check that all blocks were taken: another guide refers to a part of this one.
    pub fn only_in_part(mut self) {
        self.blocks.clear();
    }

    /// Code in a line of the text, which must begin like this.
    pub fn inline(&self, start: &str) -> String {
        let code = self.text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        let found = code.into_iter().find(|code| code.starts_with(start));
        found.unwrap_or_else(|| panic!("{}: no `{start}…`", self.name)).to_owned()
    }
}

impl Drop for Guide {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let left = self.blocks.iter().filter(|block| !block.is_taken);
        let left: Vec<_> = left.map(|block| format!("{}:{}", self.name, block.line)).collect();
        assert!(left.is_empty(), "blocks that no test runs or excuses: {left:?}");
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut section, mut is_inside) = (String::new(), false);
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), is_inside) {
            (Some(_), true) => is_inside = false,
            (Some(language), false) => {
                is_inside = true;
                blocks.push(Block {
                    section: section.clone(),
                    language: language.to_owned(),
                    text: String::new(),
                    line: number + 1,
                    is_taken: false,
                });
            }
            (None, true) => {
                let block = blocks.last_mut().expect("one has begun");
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => {
                if let Some(heading) = line.strip_prefix('#') {
                    section = heading.trim_start_matches('#').trim().to_owned();
                }
            }
        }
    }
    assert!(!is_inside, "a block without an end");
    blocks
}

/// Whether an output is the expected one, apart from numbers and the case of letters: every line of
/// `expected` occurs in it, in this order.
pub fn assert_like(output: &str, expected: &str) {
    let plain = |line: &str| {
        let line = line.trim().to_lowercase();
        let letter = |c: char| if c.is_ascii_digit() { '0' } else { c };
        let mut line: Vec<char> = line.chars().map(letter).collect();
        line.dedup_by(|next, one| *next == '0' && *one == '0');
        line.into_iter().collect::<String>()
    };
    let mut lines = output.lines().map(plain);
    for line in expected.lines().filter(|line| !line.trim().is_empty()).map(plain) {
        assert!(
            lines.any(|one| one == line),
            "{line:?} is not in\n{output}\nexpected:\n{expected}"
        );
    }
}
