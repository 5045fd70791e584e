//! The engine with the pass-through subject: scenarios that pass. Each uses a part of the language, so that
//! every line of the manual is executed at least once.

use scenario::passthrough::PassThrough;
use std::path::Path;

#[test]
fn stories_that_go_well_go_well() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    scenario::run_dir(&dir, &PassThrough::start).assert_good();
}

#[test]
fn a_subject_gets_the_requests_of_the_scenario() {
    let seen = std::sync::Mutex::new(Vec::new());
    let start = |config: &scenario::Config| {
        seen.lock().unwrap().push(config.clone());
        PassThrough::start(config)
    };
    let text = "title t\nconfig | [site]\nconfig | origin = \"http://{origin}\"\nflags -a b\nclock +1s\nstat requests=0\n";
    let story = scenario::parse_story("t.scn", text).unwrap();
    scenario::run_story(&story, &start).unwrap();
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen[0].toml, format!("[site]\norigin = \"http://{}\"", seen[0].origin));
    assert_eq!(seen[0].flags, ["-a", "b"]);
    assert!(seen[0].moves_clock);
}

#[test]
fn a_directory_without_stories_is_no_success() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let summary = scenario::run_dir(&dir, &PassThrough::start);
    assert_eq!(summary.failures().count(), 1, "{summary}");
}
