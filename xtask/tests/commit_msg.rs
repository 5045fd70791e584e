//! `scripts/hooks/commit-msg`: which messages it lets pass; and `scripts/use-hooks`: when git is set to run it.
//!
//! Both run as they are, the second in a clone of its own with no settings of the user.

use harness::{PrivateDir, copy_program};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(name)
}

/// The status of the hook and its output for one message.
fn check(message: &str) -> (i32, String) {
    let dir = PrivateDir::temporary("commit-msg").expect("can be made");
    let file = dir.path().join("COMMIT_EDITMSG");
    fs::write(&file, message).expect("can be written");
    let output = Command::new(script("hooks/commit-msg")).arg(&file).output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), printed)
}

#[test]
fn good_messages_pass() {
    let longest = format!("store: {}", "x".repeat(65));
    for message in [
        "store: reject renders older than a change\n",
        "docs/operating: describe the send backlog\n\nOperators looked for it under its old name.\n",
        "php, docs: name a tag\n",
        "http2,hit-path: process headers once\n",
        "server: compress pages\n",
        "docs: feed the index\n",
        longest.as_str(),
        "\n# a comment first\nstore: keep numbers\n# Please enter the commit message\n",
        "store: keep numbers\n\n# ------------------------ >8 ------------------------\ndiff\n",
        "Merge branch 'fresh'\n",
        "Revert \"The figures of a quiet machine.\"\n\nThis reverts commit 0123456.\n",
        "fixup! store: keep numbers\n",
        "docs: describe the größte page ↻\n",
    ] {
        assert_eq!(check(message), (0, String::new()), "{message}");
    }
}

#[test]
fn bad_messages_are_refused_with_a_reason() {
    let long = format!("store: {}", "x".repeat(66));
    for (message, reason) in [
        ("", "is empty"),
        ("# only a comment\n", "is empty"),
        (long.as_str(), "has 73 characters, at most 72"),
        ("reject renders older than a change\n", "begins with an area"),
        ("Store: reject renders\n", "begins with an area"),
        ("store:reject renders\n", "begins with an area"),
        ("store : reject renders\n", "begins with an area"),
        ("store: \n", "begins with an area"),
        ("store: reject renders.\n", "ends with a full stop"),
        ("store: rejected renders\n", "in the imperative"),
        ("store: rejects renders\n", "in the imperative"),
        ("store: rejecting renders\n", "in the imperative"),
        ("store: The renders that are older\n", "in the imperative"),
        ("store: reject renders\nthat are older\n", "second line is not empty"),
    ] {
        let (status, printed) = check(message);
        assert_eq!(status, 1, "{message}");
        assert!(printed.contains(reason), "{message}: {printed}");
    }
    let (_, printed) = check("Rejected renders.\nolder\n");
    assert_eq!(printed.lines().count(), 5, "each fault has a line, and the subject one: {printed}");
}

/// A clone with the hooks in it, and git without any settings of the user.
struct Clone {
    dir: PrivateDir,
}

impl Clone {
    fn new() -> Clone {
        let clone = Clone { dir: PrivateDir::temporary("use-hooks").expect("can be made") };
        fs::create_dir(clone.dir.path().join("scripts")).expect("can be made");
        let copy = clone.dir.path().join("scripts/use-hooks");
        copy_program(&script("use-hooks"), &copy).expect("can be copied");
        clone
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.dir.path());
        command.env("HOME", self.dir.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_CEILING_DIRECTORIES", self.dir.path().parent().unwrap_or(Path::new("/")));
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"] {
            command.env_remove(variable);
        }
        let output = command.output().expect("it runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned()
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.run(Path::new("git"), arguments)
    }

    fn use_hooks(&self) -> String {
        self.run(&self.dir.path().join("scripts/use-hooks"), &[])
    }

    fn hooks_path(&self) -> String {
        self.git(&["config", "--get", "core.hooksPath"])
    }
}

#[test]
fn hooks_are_used_in_a_clone_without_hooks() {
    let clone = Clone::new();
    assert_eq!(clone.use_hooks(), "", "outside of a clone it does nothing");
    clone.git(&["init", "--quiet"]);
    assert!(clone.use_hooks().contains("git runs the hooks in scripts/hooks"));
    assert_eq!(clone.hooks_path(), "scripts/hooks");
    assert_eq!(clone.use_hooks(), "", "the second time it does nothing");
}

#[test]
fn hooks_of_the_user_are_left_alone() {
    let clone = Clone::new();
    clone.git(&["init", "--quiet"]);
    clone.git(&["config", "--global", "core.hooksPath", "/elsewhere"]);
    assert!(clone.use_hooks().contains("core.hooksPath is /elsewhere"));
    assert_eq!(clone.hooks_path(), "/elsewhere");

    let clone = Clone::new();
    clone.git(&["init", "--quiet"]);
    let hooks = clone.dir.path().join(".git/hooks");
    fs::create_dir_all(&hooks).expect("can be made");
    fs::copy(script("hooks/commit-msg"), hooks.join("pre-commit")).expect("can be copied");
    assert!(clone.use_hooks().contains("pre-commit is in use"));
    assert_eq!(clone.hooks_path(), "");
}
