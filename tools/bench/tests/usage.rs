//! The command line, and that the program is built by `cargo test`: `make test` runs what was built here.

use std::process::Command;

#[test]
fn lists_its_options_and_refuses_others() {
    let run = |option| Command::new(env!("CARGO_BIN_EXE_bench")).arg(option).output();
    let help = run("--help").expect("it runs");
    assert!(help.status.success());
    assert!(String::from_utf8_lossy(&help.stdout).contains("--short"));
    assert_eq!(run("--no-such-option").expect("it runs").status.code(), Some(2));
}
