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

/// The process that `crawl` starts. The server accepts connections, and answers nothing.
#[test]
fn a_crawler_counts_its_pages_until_its_time_is_over() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("an address").to_string();
    let arguments = ["crawler", "--server", &address, "--crawler", "E", "--rate", "3"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    let run = command.args(arguments).args(["--seconds", "1"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&run.stdout);
    let counts = text.trim().split(' ').map(str::parse::<u64>).collect::<Result<Vec<_>, _>>();
    let counts = counts.unwrap_or_else(|_| panic!("{text}"));
    assert_eq!((run.status.success(), counts.len(), counts[0]), (true, 2, 0));
}
