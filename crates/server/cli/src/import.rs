//! `pagewell import`: reads the files, has them translated (`import-rules`), and writes configuration and report.
//!
//! Files are read as text, regular ones only, and bounded. Existing files are never overwritten. A pattern of
//! `include` is looked for beside the file that has it and in the directories above, as nginx's own directory is one of
//! them.

use command_line::options::{ImportArgs, ImportCommand};
use import_rules::{
    ConfigurationFile, ImportChoices, ImportReport, ImportedServer, IncludedFiles, import,
};
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The maximum number of files that one `include` names.
const INCLUDED_MAX: usize = 500;
/// The maximum number of names that are read in one directory.
const NAMES_MAX: usize = 10_000;

/// The output of an import.
#[derive(Debug)]
pub struct ImportOutput {
    /// The configuration, for standard output.
    pub configuration: Option<String>,
    /// The report by line, for standard error.
    pub report: Option<String>,
    /// Whether a restriction was not translated.
    pub lacks_restrictions: bool,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be read, is no configuration, or exists already: a sentence.
pub fn run(args: &ImportArgs) -> Result<ImportOutput, String> {
    let (server, options) = match &args.server {
        ImportCommand::Nginx(options) => (ImportedServer::Nginx, options),
        ImportCommand::Htaccess(options) => (ImportedServer::Apache, options),
    };
    let paths = options.files.iter().map(|path| absolute(path));
    let files: Vec<_> = paths.map(|path| read(&path?)).collect::<Result<_, _>>()?;
    let root = options.root.as_deref().map(absolute).transpose()?;
    // Beside the configuration, if that is a file.
    let redirects = options.output.as_deref().map(absolute).transpose()?;
    let redirects = redirects.map(|path| path.with_extension("redirects.tsv"));
    let choices = ImportChoices {
        host: options.host.as_deref(),
        root: root.as_deref(),
        redirect_file: redirects.as_deref(),
    };
    let imported =
        import(server, &files, &choices, &mut FilesOfDisk).map_err(|error| error.to_string())?;
    let lacks_restrictions = imported.report.lacks_restrictions();
    let report = if options.json { json_text(&imported.report) } else { imported.report.text() };
    if let Some(lines) = imported.redirects {
        written(redirects.as_deref(), lines)?;
    }
    Ok(ImportOutput {
        configuration: written(options.output.as_deref(), imported.text)?,
        report: written(options.report.as_deref(), report)?,
        lacks_restrictions,
    })
}

/// Writes the text to a new file, or returns it.
fn written(path: Option<&Path>, text: String) -> Result<Option<String>, String> {
    let Some(path) = path else { return Ok(Some(text)) };
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    let result = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    result.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!("{} exists, and is not overwritten: choose another file", path.display())
        }
        _ => format!("{}: {error}", path.display()),
    })?;
    Ok(None)
}

fn json_text(report: &ImportReport) -> String {
    let of = |one: &import_rules::DirectiveReport| {
        json!({
            "file": one.file,
            "line": one.line,
            "directive": one.directive,
            "fate": one.fate.word(),
            "remark": one.remark,
            "restriction": one.is_restriction,
        })
    };
    let all: Vec<_> = report.directives.iter().map(of).collect();
    let report = json!({ "directives": all, "lacks_restrictions": report.lacks_restrictions() });
    format!("{report:#}\n")
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> Result<ConfigurationFile, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let found = fs::metadata(path).map_err(|error| failed(&error))?;
    if !found.is_file() {
        return Err(failed(&"it is not a file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| failed(&error))?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(&"it is larger than 4 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| failed(&"it is no UTF-8"))?;
    Ok(ConfigurationFile { path: path.to_owned(), text })
}

struct FilesOfDisk;

impl IncludedFiles for FilesOfDisk {
    fn matching(&mut self, pattern: &str, from: &Path) -> Result<Vec<ConfigurationFile>, String> {
        let mut directories: Vec<&Path> = from.ancestors().skip(1).take(3).collect();
        directories.push(Path::new("/etc/nginx"));
        for directory in directories {
            let found = names(&directory.join(pattern));
            if !found.is_empty() {
                return found.iter().map(|path| read(path)).collect();
            }
        }
        if pattern.contains('*') { Ok(Vec::new()) } else { Err("there is no such file".into()) }
    }
}

/// The files that a path with `*` names, sorted.
fn names(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/")];
    for part in pattern.iter().skip(1) {
        let text = part.to_string_lossy();
        found = match text.split_once('*') {
            None => found.iter().map(|directory| directory.join(part)).collect(),
            Some((begin, end)) => {
                found.iter().flat_map(|directory| children(directory, begin, end)).collect()
            }
        };
        found.truncate(INCLUDED_MAX);
    }
    found.retain(|path| path.is_file());
    found
}

/// The names in a directory that begin and end with these texts.
fn children(directory: &Path, begin: &str, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names =
        entries.take(NAMES_MAX).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let fits = |name: &String| {
        name.len() >= begin.len() + end.len()
            && name.starts_with(begin)
            && name.ends_with(end)
            && !name.starts_with('.')
    };
    let mut all: Vec<PathBuf> = names.filter(fits).map(|name| directory.join(name)).collect();
    all.sort();
    all
}
