//! Tests that nothing would run. A manifest may leave out the tests of a library or a program (`test = false`), or
//! the examples in the documentation of a library (`doctest = false`), so that no empty test program is built for
//! them. Then there must be none.
//!
//! The sources of a library are all files below `src` but those of the program; those of a program are `main.rs`
//! and the modules that it names.

use super::files::SourceFile;
use super::{Finding, finding};
use toml::{Table, Value};

/// Tests of a target whose manifest leaves them out.
pub fn left_out(files: &[SourceFile]) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in files {
        let Some(directory) = file.path.strip_suffix("Cargo.toml") else { continue };
        let Ok(manifest) = file.text.parse::<Table>() else { continue };
        let source = format!("{directory}src/");
        let is_off = |target: Option<&Value>, key: &str| {
            target.and_then(|target| target.get(key)).and_then(Value::as_bool) == Some(false)
        };
        let programs = manifest.get("bin").and_then(Value::as_array).into_iter().flatten();
        let library = manifest.get("lib");
        let of_program = of_program(files, &source);
        for one in files.iter().filter(|one| one.path.starts_with(&source)) {
            let is_program = of_program.iter().any(|beginning| one.path.starts_with(beginning));
            let (target, without_tests) = if is_program {
                ("program", programs.clone().any(|program| is_off(Some(program), "test")))
            } else {
                ("library", is_off(library, "test"))
            };
            let without_examples = !is_program && is_off(library, "doctest");
            let message = |what: &str| format!("{} leaves {what} of the {target} out", file.path);
            if let Some(line) = first_test(&one.text).filter(|_| without_tests) {
                found.push(finding(one, line, "left-out", &message("the tests")));
            }
            if let Some(line) = first_example(&one.text).filter(|_| without_examples) {
                found.push(finding(one, line, "left-out", &message("the examples")));
            }
        }
    }
    found
}

/// The beginnings of the paths of a program's sources: `main.rs`, and its modules with and without more below them.
fn of_program(files: &[SourceFile], source: &str) -> Vec<String> {
    let main = format!("{source}main.rs");
    let Some(text) = files.iter().find(|file| file.path == main).map(|file| &file.text) else {
        return Vec::new();
    };
    let library = format!("{source}lib.rs");
    if !files.iter().any(|file| file.path == library) {
        return vec![source.to_owned()];
    }
    let modules = text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let below = modules.flat_map(|name| [format!("{source}{name}.rs"), format!("{source}{name}/")]);
    below.chain([main]).collect()
}

/// The line of the first test, from 1.
fn first_test(text: &str) -> Option<usize> {
    let is_test = |line: &str| {
        line.starts_with("#[") && (line.ends_with("test]") || line.contains("::test("))
    };
    text.lines().position(|line| is_test(line.trim())).map(|at| at + 1)
}

/// The line of the first example that rustdoc would compile, from 1: a block without the name of another language.
/// Documentation from a file counts as one.
fn first_example(text: &str) -> Option<usize> {
    const OF_RUST: [&str; 6] = ["", "rust", "no_run", "should_panic", "ignore", "compile_fail"];
    let mut is_inside = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("#![doc = include_str!") || line.starts_with("#[doc = include_str!") {
            return Some(number + 1);
        }
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(language) = comment.and_then(|comment| comment.trim().strip_prefix("```")) else {
            continue;
        };
        is_inside = !is_inside;
        if is_inside && language.split(',').any(|word| OF_RUST.contains(&word.trim())) {
            return Some(number + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::files::file;
    use super::*;

    #[test]
    fn a_test_that_nothing_would_run_is_found() {
        let off = "[lib]\ntest = false\ndoctest = false\n";
        let example = "/// ```\n/// one()\n/// ```\n";
        let test = "    #[test]\n    fn one() {}\n";
        let lines = |manifest: &str, path: &str, text: &str| -> Vec<usize> {
            let files = [
                file("a/Cargo.toml", manifest),
                file("a/src/lib.rs", ""),
                file("a/src/main.rs", "mod own;\n"),
                file(path, text),
            ];
            left_out(&files).iter().map(|found| found.line).collect()
        };
        assert_eq!(lines(off, "a/src/b.rs", test), [1]);
        assert_eq!(lines(off, "a/src/b.rs", "#[tokio::test(start_paused = true)]\n"), [1]);
        assert_eq!(lines(off, "a/src/b.rs", &format!("//! A module.\n{example}")), [2]);
        assert_eq!(lines(off, "a/src/b.rs", "//! ```no_run\n//! ```\n"), [1]);
        assert_eq!(lines(off, "a/src/b.rs", "#![doc = include_str!(\"../README.md\")]\n"), [1]);
        for right in ["//! ```text\n//! one\n//! ```\n", "// ```\n", "fn test() {}\n"] {
            assert!(lines(off, "a/src/b.rs", right).is_empty(), "{right}");
        }
        for manifest in ["", "[lib]\nname = \"a\"\n"] {
            assert!(lines(manifest, "a/src/b.rs", &format!("{example}{test}")).is_empty());
        }
        // The program has tests of its own.
        let program = "[[bin]]\nname = \"a\"\npath = \"src/main.rs\"\ntest = false\n";
        assert_eq!(lines(program, "a/src/own/c.rs", test), [1]);
        assert!(lines(program, "a/src/b.rs", test).is_empty());
        assert!(lines(off, "a/src/own.rs", test).is_empty());
        assert!(lines(off, "b/src/b.rs", test).is_empty(), "another crate");
    }
}
