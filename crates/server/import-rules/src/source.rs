//! Configuration files of a web server: their text, directives as a tree, and the bounds of all of them.
//!
//! Both syntaxes have the same tree: a directive has a name, words, and perhaps a block. Every directive knows its
//! place. The caller reads files, because this crate has no I/O.

use std::fmt;
use std::path::{Path, PathBuf};

/// The maximum size of one file in bytes.
pub(crate) const FILE_BYTES_MAX: usize = 4 << 20;
/// The maximum size of all files together.
pub(crate) const ALL_BYTES_MAX: usize = 16 << 20;
/// The maximum number of files.
pub(crate) const FILES_MAX: usize = 500;
/// The maximum depth of blocks, and of files that include files.
pub(crate) const DEPTH_MAX: usize = 24;
/// The maximum number of words and blocks of all files.
pub(crate) const WORDS_MAX: usize = 400_000;

/// A configuration file and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationFile {
    /// Its path, as messages show it.
    pub path: PathBuf,
    /// The text of the file.
    pub text: String,
}

/// Reads the files that other files include.
pub trait IncludedFiles {
    /// The files that a pattern names, as it is written in a file. None may match.
    ///
    /// # Errors
    /// A file cannot be read: a sentence.
    fn matching(&mut self, pattern: &str, from: &Path) -> Result<Vec<ConfigurationFile>, String>;
}

/// No file includes another one that can be read.
#[derive(Debug, Clone, Copy)]
pub struct NothingIncluded;

impl IncludedFiles for NothingIncluded {
    fn matching(&mut self, pattern: &str, _: &Path) -> Result<Vec<ConfigurationFile>, String> {
        Err(format!("{pattern} is not read here"))
    }
}

/// A line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct SourceLine {
    /// The index of the file in [`Sources`].
    pub(crate) file: usize,
    /// The line, from 1.
    pub(crate) line: usize,
}

/// A directive with its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directive {
    /// Its name; Apache's names are in lower case, and those of sections begin with `<`.
    pub(crate) name: String,
    /// Its words without quotes.
    pub(crate) words: Vec<String>,
    /// The directives in its block, if it has one.
    pub(crate) block: Option<Vec<Directive>>,
    pub(crate) at: SourceLine,
}

impl Directive {
    /// The word with this index, or an empty text.
    pub(crate) fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    /// The directives in its block.
    pub(crate) fn inner(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// The directive on one line.
    pub(crate) fn shown(&self) -> String {
        let mut text = self.name.clone();
        for word in &self.words {
            text.push(' ');
            text.push_str(word);
        }
        let mut text: String =
            text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(120).collect();
        if self.name.starts_with('<') {
            text.push('>');
        }
        text
    }
}

/// A file that cannot be read as a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationError {
    /// The file in which it is.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The fault and its remedy, in a sentence.
    pub message: String,
}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.message)
    }
}

impl std::error::Error for ConfigurationError {}

/// The names of all files that were read, and how much of the bounds is used.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) paths: Vec<PathBuf>,
    bytes: usize,
    words: usize,
}

impl Sources {
    /// Adds a file and returns its index.
    pub(crate) fn add(&mut self, file: &ConfigurationFile) -> Result<usize, ConfigurationError> {
        self.paths.push(file.path.clone());
        self.bytes = self.bytes.saturating_add(file.text.len());
        let index = self.paths.len() - 1;
        let at = SourceLine { file: index, line: 1 };
        if file.text.len() > FILE_BYTES_MAX || self.bytes > ALL_BYTES_MAX {
            return Err(self.error(at, "the files are too large: 4 MiB each, 16 MiB together"));
        }
        if self.paths.len() > FILES_MAX {
            return Err(self.error(at, &format!("more than {FILES_MAX} files")));
        }
        Ok(index)
    }

    /// Counts a word or block.
    pub(crate) fn count(&mut self, at: SourceLine) -> Result<(), ConfigurationError> {
        self.words += 1;
        if self.words > WORDS_MAX {
            return Err(self.error(at, &format!("more than {WORDS_MAX} words in all files")));
        }
        Ok(())
    }

    pub(crate) fn error(&self, at: SourceLine, message: &str) -> ConfigurationError {
        let file = self.paths.get(at.file).cloned().unwrap_or_default();
        ConfigurationError { file, line: at.line, message: message.to_owned() }
    }

    /// The place as `file:line`.
    pub(crate) fn shown(&self, at: SourceLine) -> String {
        let file = self.paths.get(at.file).map(|path| path.display().to_string());
        format!("{}:{}", file.unwrap_or_default(), at.line)
    }
}
