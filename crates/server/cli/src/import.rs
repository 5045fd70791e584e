//! `pagewell import`: reads the files, has them translated (`import-rules`), and writes configuration and report.
//!
//! Files are read as text, regular ones only, and bounded. Existing files are never overwritten. A pattern of
//! `include` is looked for beside the file that has it and in the directories above, as nginx's own directory is one of
//! them.

use command_line::options::{ImportArgs, ImportCommand};
use import_rules::{
    ConfigurationFile, ImportChoices, ImportReport, ImportedServer, IncludedFiles, import,
};
use rule_conditions::fits_name;
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
            let found = names(&directory.join(pattern))?;
            if !found.is_empty() {
                return found.iter().map(|path| read(path)).collect();
            }
        }
        if is_pattern(pattern) { Ok(Vec::new()) } else { Err("there is no such file".into()) }
    }
}

/// Whether a text has a wildcard.
fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// The files that a path with `*` and `?` names, sorted.
///
/// # Errors
/// Some files may be missing from the answer: a restriction could be in one of them.
fn names(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = vec![PathBuf::from("/")];
    for part in pattern.iter().skip(1) {
        let text = part.to_string_lossy();
        if text.contains(['[', '\\']) {
            return Err("a pattern with [ or \\ is not read: name the files".into());
        }
        let mut next = Vec::new();
        for directory in found {
            if is_pattern(&text) {
                next.extend(children(&directory, text.as_bytes())?);
            } else {
                next.push(directory.join(part));
            }
        }
        if next.len() > INCLUDED_MAX {
            return Err(format!("it names more than {INCLUDED_MAX} files"));
        }
        found = next;
    }
    found.retain(|path| path.is_file());
    Ok(found)
}

/// The names in a directory that fit a pattern. A leading dot fits only itself, as in a shell.
fn children(directory: &Path, pattern: &[u8]) -> Result<Vec<PathBuf>, String> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (number, entry) in entries.flatten().enumerate() {
        if number == NAMES_MAX {
            let directory = directory.display();
            return Err(format!("{directory} has more than {NAMES_MAX} names"));
        }
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if fits_name(pattern, name)
            && (name.first() != Some(&b'.') || pattern.first() == Some(&b'.'))
        {
            all.push(entry.path());
        }
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use command_line::options::ImportFiles;
    use harness::PrivateDir;

    /// Imports the first of these files, which are in one directory.
    fn imported(files: &[(&str, &str)]) -> Result<ImportOutput, String> {
        let dir = PrivateDir::temporary("import").unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let files = ImportFiles {
            files: vec![dir.path().join(files[0].0)],
            host: None,
            root: None,
            output: None,
            report: None,
            json: false,
        };
        run(&ImportArgs { server: ImportCommand::Nginx(files) })
    }

    #[test]
    fn included_files_are_read_or_reported() {
        let deny = "location /secret/ { deny all; }";
        let site = |include: &str| format!("server {{ root /srv; {include} }}");
        for (include, name, is_read) in [
            ("include parts.d/*.conf;", "parts.d/a.conf", true),
            ("include parts.d/*-a*.c*f;", "parts.d/10-a-b.conf", true),
            ("include p*/?.conf;", "parts.d/a.conf", true),
            ("include parts.d/a.conf;", "parts.d/a.conf", true),
            // No file: nothing is lost.
            ("include parts.d/*.conf;", "parts.d/.a.conf", true),
            ("include parts.d/[0-9]*.conf;", "parts.d/1.conf", false),
            ("include parts.d/b.conf;", "parts.d/a.conf", false),
        ] {
            let text = site(include);
            let output = imported(&[("site.conf", &*text), (name, deny)]).unwrap();
            assert_eq!(output.lacks_restrictions, !is_read, "{include}: {output:?}");
            let is_denied = output.configuration.unwrap().contains("/secret/");
            assert_eq!(is_denied, is_read && !name.contains("/."), "{include}");
        }
        let text = site("include *.conf;");
        let own = imported(&[("site.conf", &*text)]);
        assert!(own.unwrap_err().contains("deeply"));
        let names: Vec<String> = (0..=INCLUDED_MAX).map(|n| format!("all/{n}.conf")).collect();
        let text = site("include all/*.conf;");
        let mut files: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "")).collect();
        files.insert(0, ("site.conf", &*text));
        let output = imported(&files).unwrap();
        assert!(output.lacks_restrictions, "one of them may restrict: {output:?}");
    }
}
