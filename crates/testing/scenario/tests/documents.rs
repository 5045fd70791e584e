//! The examples in the manual and the scenarios of the repository are valid: they can be parsed, have a title
//! and sections, and no two have the same title.

use scenario::{Story, parse_story};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn the_manuals_examples_are_stories() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let examples: Vec<&str> =
        manual.split("```scenario\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let story = parse_story("README.md", example).unwrap_or_else(|error| panic!("{error}"));
        assert!(story.steps.len() > 3);
    }
}

#[test]
fn every_scenario_can_be_parsed_and_cites_a_specification() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/scenarios");
    let mut found = Vec::new();
    files(&root, &mut found);
    let mut titles: HashMap<String, PathBuf> = HashMap::new();
    let mut wrong = Vec::new();
    for path in found {
        let name = path.display().to_string();
        if path.extension().is_none_or(|extension| extension != "scn") {
            wrong.push(format!("{name}: no story"));
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        match parse_story(&name, &text) {
            Err(error) => wrong.push(format!("{name}: {error}")),
            Ok(Story { title, spec, .. }) => {
                if spec.is_empty() {
                    wrong.push(format!("{name}: no spec"));
                }
                if let Some(other) = titles.insert(title, path) {
                    wrong.push(format!("{name}: the title of {}", other.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(titles.len() >= 60, "only {} stories", titles.len());
}
