//! Scripts and programs that a test writes and runs.
//!
//! The kernel refuses to run a file that any process has open for writing ("text file busy"). While a test
//! writes a file, another thread may start a process, which holds all of this one's files for a moment. So
//! `install` writes what is to be run: no thread of this process ever has it open for writing.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a script that all may run (mode 0755). An existing file is replaced.
///
/// # Errors
/// If the file cannot be written: the message of `install`.
pub fn write_script(path: &Path, text: &str) -> io::Result<()> {
    let (content, mut writer) = io::pipe()?;
    std::thread::scope(|scope| {
        let written = scope.spawn(move || writer.write_all(text.as_bytes()));
        install(Stdio::from(content), path)?;
        written.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Copies a program or a script, which all may run then (mode 0755). An existing file is replaced.
///
/// # Errors
/// If `from` cannot be read or `to` cannot be written.
pub fn copy_program(from: &Path, to: &Path) -> io::Result<()> {
    install(Stdio::from(File::open(from)?), to)
}

fn install(content: Stdio, to: &Path) -> io::Result<()> {
    let mut command = Command::new("install");
    command.args(["-m", "755", "--", "/dev/stdin"]).arg(to).stdin(content);
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{copy_program, write_script};
    use crate::PrivateDir;
    use std::process::Command;

    #[test]
    fn scripts_run_while_other_threads_start_processes() {
        let dir = PrivateDir::temporary("executable").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let dir = dir.path();
                scope.spawn(move || {
                    for round in 0..25 {
                        let (script, copy) =
                            (dir.join(format!("{thread}-{round}")), dir.join(format!("{thread}")));
                        write_script(&script, &format!("#!/bin/sh\necho {round}\n")).unwrap();
                        copy_program(&script, &copy).unwrap();
                        for program in [script, copy] {
                            let output = Command::new(program).output().unwrap();
                            assert_eq!(output.stdout, format!("{round}\n").into_bytes());
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        let dir = PrivateDir::temporary("executable").unwrap();
        let error = write_script(&dir.path().join("none/script"), "#!/bin/sh\n").unwrap_err();
        assert!(error.to_string().contains("none/script"), "{error}");
    }
}
