//! `pagewell stats --watch` on the real binary: a line each second, until its reader has gone.

use acceptance::{Site, binary, client};
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A process that is ended at the end of the test.
struct Watch(Child);

impl Watch {
    fn start(args: &[&str]) -> Watch {
        let mut command = Command::new(binary());
        command.args(["stats", "--watch"]).args(args);
        Watch(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs"))
    }

    fn lines(&mut self) -> Lines<BufReader<ChildStdout>> {
        BufReader::new(self.0.stdout.take().expect("a pipe")).lines()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn site() -> Site {
    Site::new(&[("index.php", "<?php keep(); echo 1;")])
}

#[test]
fn each_line_has_a_value_for_each_column() {
    let site = site();
    let pagewell = site.serve("");
    client(&pagewell).get("/").expect("an answer");
    let mut watch = Watch::start(&["--admin", &pagewell.admin().to_string()]);
    let mut lines = watch.lines().map(|line| line.expect("text"));
    let header = lines.next().expect("a header");
    assert!(header.starts_with("requests/s   hit %"), "{header}");
    for _ in 0..2 {
        let line = lines.next().expect("a line");
        let values: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((values.len(), values[7]), (9, "1"), "{header}\n{line}");
    }
    drop(lines);
    assert!(watch.0.wait().expect("it ends").success(), "the reader has gone");
}

#[test]
fn a_line_of_json_has_all_counters() {
    let site = site();
    let pagewell = site.serve("");
    client(&pagewell).get("/").expect("an answer");
    let mut watch = Watch::start(&["--json", "--admin", &pagewell.admin().to_string()]);
    let line = watch.lines().next().expect("a line").expect("text");
    let stats: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!((&stats["renders"], &stats["pages"]), (&1.into(), &1.into()), "{line}");
}

#[test]
fn an_error_ends_it() {
    let site = site();
    let pagewell = site.serve("");
    let admin = pagewell.admin().to_string();
    let complaint = |args: &[&str]| {
        let all = [&["stats", "--watch", "--admin", &admin], args].concat();
        let output = Command::new(binary()).args(all).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let unknown = complaint(&["--site", "nobody.test"]);
    assert!(unknown.contains("nobody.test") && unknown.contains("leave out --site"), "{unknown}");
    drop(pagewell);
    assert!(complaint(&[]).contains("is it running"));
}
