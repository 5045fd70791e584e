//! The limit of open files: Pagewell raises its soft limit to the hard limit, php-fpm gets the soft limit from before,
//! and `pagewell doctor` judges the hard limit.
//!
//! Not here: a limit that is reached (`cargo soak`).

use super::deployments::successor;
use super::doctor::of;
use acceptance::{BOUND, Site, binary, until};
use harness::{Address, Pagewell, Signal, Wait, cpu};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A script that runs the program with a soft limit of 256 open files, and a hard limit of 1024.
fn limited(site: &Site) -> PathBuf {
    let (script, program) = (site.at("limited"), binary().display());
    let limits = "ulimit -Sn 256 && ulimit -Hn 1024";
    let text = format!("#!/bin/sh\n{limits} && exec '{program}' \"$@\"\n");
    harness::write_script(&script, &text).expect("a script");
    script
}

/// The soft and the hard limit of a process.
fn limits(pid: u32) -> [String; 2] {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"));
    let mut numbers = line.expect("a line").split_whitespace().map(str::to_owned);
    [(); 2].map(|()| numbers.next().expect("a number"))
}

/// Checks a Pagewell that was started by [`limited`], or has taken over from one, and its php-fpm.
fn is_raised(pid: u32) {
    assert_eq!(limits(pid), ["1024", "1024"]);
    let php = || -> Vec<u32> {
        cpu::descendants(pid).into_iter().filter(|other| *other != pid).collect()
    };
    until("php-fpm's master has a child", || php().len() >= 2);
    for other in php() {
        assert_eq!(limits(other), ["256", "1024"], "process {other}");
    }
}

#[test]
fn the_soft_limit_is_raised_for_pagewell_and_its_successor_but_not_for_php() {
    let site = Site::new(&[]);
    let root = site.root().display().to_string();
    let config = site.config("", "").display().to_string();
    // Addresses that the successor has, too: it would choose another port for 0.
    let [listen, admin] =
        ["site.sock", "admin.sock"].map(|name| format!("unix:{}", site.at(name).display()));
    let args = [
        root.as_str(),
        "--memory",
        "64M",
        "--config",
        &config,
        "--listen",
        &listen,
        "--admin",
        &admin,
    ];
    let mut first = Pagewell::start(&limited(&site), &args).expect("pagewell starts");
    is_raised(first.pid());
    assert!(!first.log().contains("open-files-not-raised"), "{}", first.log());

    first.signal(Signal::USR2);
    until("the first has ended", || !cpu::is_running(first.pid()));
    let pid = successor(&first.log());
    is_raised(pid);
    let id = rustix::process::Pid::from_raw(pid as i32).expect("a process");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    until("its successor has ended", || !cpu::is_running(pid));
    assert!(matches!(first.wait(BOUND), Wait::Ended(status) if status.success()));
}

#[test]
fn the_doctor_judges_the_hard_limit_of_a_running_pagewell_and_of_a_later_one() {
    let site = Site::new(&[]);
    let (script, root) = (limited(&site), site.root().display().to_string());
    let args = [root.as_str(), "--memory", "64M"];
    let pagewell = Pagewell::start(&script, &args).expect("pagewell starts");
    let (Address::Tcp(listen), Address::Tcp(admin)) = (pagewell.address(), pagewell.admin()) else {
        panic!("TCP addresses")
    };
    let nobody = format!("unix:{}", site.at("nobody.sock").display());
    let running = format!("The running Pagewell (process {})", pagewell.pid());
    let later = "A Pagewell that this shell starts".to_owned();
    for (admin, subject) in [(admin.to_string(), running), (nobody, later)] {
        let file = site.at("doctor.toml");
        let text = format!("listen = \"{listen}\"\nadmin = \"{admin}\"\n");
        fs::write(&file, text).expect("it can be written");
        let mut doctor = Command::new(&script);
        doctor.args(["doctor", "--json", "--config"]).arg(&file).arg(&root);
        let output = doctor.output().expect("it runs");
        let evidence = of(&output, "open-files", "evidence").expect("found");
        assert!(evidence.starts_with(&format!("{subject} may open 1024 files; ")), "{evidence}");
        let command = of(&output, "open-files", "command").expect("found");
        assert!(command.contains("ulimit -Hn "), "{command}");
    }
}
