//! The manifests of the workspace: which crates there are, and what each of them depends on.
//!
//! Reads the `Cargo.toml` of every member that the workspace's own manifest names (a directory, or all
//! directories below one: `crates/cache/*`). Dependencies for one target only count like all others. A
//! dependency keeps its line, so that a finding can point at it.

use super::files::SourceFile;
use toml::{Table, Value};

/// When a dependency is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyKind {
    /// To build the crate, or to run its build script.
    Build,
    /// For its tests, examples and benchmarks only.
    Dev,
}

/// One dependency of a crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The name of the package.
    pub name: String,
    /// When it is needed.
    pub kind: DependencyKind,
    /// The line of the manifest that names it, from 1.
    pub line: usize,
}

/// A member of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name of the package.
    pub name: String,
    /// The directory of the crate, from the root of the repository.
    pub directory: String,
    /// All dependencies, libraries from elsewhere included.
    pub dependencies: Vec<Dependency>,
}

/// The members of the workspace, from the manifests among these files.
pub fn members(files: &[SourceFile]) -> Vec<Member> {
    let manifest = |path: &str| files.iter().find(|file| file.path == path);
    let Some(root) = manifest("Cargo.toml").and_then(|file| parsed(&file.text)) else {
        return Vec::new();
    };
    let patterns = root.get("workspace").and_then(|workspace| workspace.get("members"));
    let patterns: Vec<&str> = strings(patterns).collect();
    let mut found = Vec::new();
    for file in files {
        let Some(directory) = file.path.strip_suffix("/Cargo.toml") else { continue };
        if patterns.iter().any(|pattern| is_matched(directory, pattern)) {
            found.extend(member(directory, &file.text));
        }
    }
    found
}

fn parsed(text: &str) -> Option<Table> {
    text.parse().ok()
}

fn strings(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a pattern of the workspace names a directory.
fn is_matched(directory: &str, pattern: &str) -> bool {
    match pattern.strip_suffix("/*") {
        Some(parent) => directory.rsplit_once('/').is_some_and(|(above, _)| above == parent),
        None => directory == pattern,
    }
}

fn member(directory: &str, text: &str) -> Option<Member> {
    let manifest = parsed(text)?;
    let name = manifest.get("package")?.get("name")?.as_str()?.to_owned();
    let mut dependencies = dependencies_of(&manifest, text);
    let targets = manifest.get("target").and_then(Value::as_table);
    for target in targets.into_iter().flat_map(Table::values).filter_map(Value::as_table) {
        dependencies.extend(dependencies_of(target, text));
    }
    Some(Member { name, directory: directory.to_owned(), dependencies })
}

fn dependencies_of(table: &Table, text: &str) -> Vec<Dependency> {
    let kinds = [
        ("dependencies", DependencyKind::Build),
        ("build-dependencies", DependencyKind::Build),
        ("dev-dependencies", DependencyKind::Dev),
    ];
    let mut found = Vec::new();
    for (section, kind) in kinds {
        let listed = table.get(section).and_then(Value::as_table);
        for (key, value) in listed.into_iter().flatten() {
            let package = value.get("package").and_then(Value::as_str);
            let line = line_of(text, section, key);
            found.push(Dependency { name: package.unwrap_or(key).to_owned(), kind, line });
        }
    }
    found
}

/// The line that begins with this key, in a section whose heading ends with that name; 1 if there is none.
fn line_of(text: &str, section: &str, key: &str) -> usize {
    let mut is_inside = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(heading) = line.trim().strip_prefix('[') {
            let last = heading.trim_end_matches(']').rsplit('.').next().unwrap_or_default();
            is_inside = last == section;
        }
        let rest = line.strip_prefix(key).filter(|_| is_inside);
        if rest.is_some_and(|rest| rest.starts_with([' ', '.', '='])) {
            return number + 1;
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::super::files::file;
    use super::*;

    #[test]
    fn members_and_their_dependencies_are_read() {
        let one = "[package]\nname = \"one\"\n[dependencies]\nbytes = \"1\"\nshort = { package = \"two\", path = \"x\" }\n\
                   [dev-dependencies]\nbytes.workspace = true\n[target.\"cfg(unix)\".dependencies]\nthree.workspace = true\n";
        let files = [
            file("Cargo.toml", "[workspace]\nmembers = [\"crates/*\", \"alone\"]\n"),
            file("alone/Cargo.toml", "[package]\nname = \"alone\"\n"),
            file("alone/below/Cargo.toml", "[package]\nname = \"none\"\n"),
            file("crates/one/Cargo.toml", one),
            file("other/Cargo.toml", "[package]\nname = \"other\"\n"),
        ];
        let found = members(&files);
        let names: Vec<&str> = found.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["alone", "one"]);
        assert_eq!(found[1].directory, "crates/one");
        let dependency = |name: &str, kind, line| Dependency { name: name.into(), kind, line };
        let expected = [
            dependency("bytes", DependencyKind::Build, 4),
            dependency("two", DependencyKind::Build, 5),
            dependency("bytes", DependencyKind::Dev, 7),
            dependency("three", DependencyKind::Build, 9),
        ];
        assert_eq!(found[1].dependencies, expected);
    }
}
