//! The printed steps for the database: of each product, of a machine that has a part of them already, and of a database
//! on another machine.

use crate::tree::Tree;
use command_line::options::{InitArgs, SiteKind};
use std::fs;
use std::process::Command;

/// The lines of each printed step.
fn steps(said: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for line in said.split_once("\nNext\n").expect("steps").1.lines() {
        match (line.strip_prefix("       "), all.last_mut()) {
            (Some(line), Some(lines)) => lines.push(line.to_owned()),
            _ => all.push(Vec::new()),
        }
    }
    all
}

fn is_command(line: &str) -> bool {
    let programs =
        ["sudo", "echo", "printf", "head", "curl", "test", "pagewell", "make", "composer"];
    let program = line.split(' ').next().unwrap_or_default();
    programs.contains(&program) || program == "bin/magento"
}

/// So that a step is pasted as a whole, into a shell or a file.
#[test]
fn each_step_has_commands_or_lines_alone() {
    for kind in SiteKind::ALL {
        for with_nginx in [false, true] {
            let (tree, dir) = Tree::with_php().site(kind);
            let tree = if with_nginx { tree.with_nginx(dir, "site.example") } else { tree };
            let said = tree.init(dir).0;
            // A command of several lines writes a file of nginx.
            let is_one_command = |lines: &Vec<String>| lines.concat().starts_with("echo 'server");
            for lines in steps(&said).into_iter().filter(|lines| !is_one_command(lines)) {
                let commands = lines.iter().filter(|line| is_command(line)).count();
                assert!(commands == 0 || commands == lines.len(), "{lines:?}\n{said}");
            }
        }
    }
}

#[test]
fn the_options_of_the_change_stream_are_written_by_a_command() {
    let said = Tree::with_php().wordpress().init("/var/www/blog").0;
    let line = said.lines().find(|line| line.contains("printf ")).expect("a command");
    let (command, file) = line.split_once(" | sudo tee -a ").expect("a file");
    assert_eq!(file, "/etc/mysql/mariadb.conf.d/60-pagewell.cnf");
    let written = Command::new("sh").args(["-c", command]).output().expect("sh runs").stdout;
    assert_eq!(
        String::from_utf8_lossy(&written),
        "[mariadb]\nlog_bin\nserver_id = 1\nbinlog_format = ROW\n"
    );
}

/// RHEL's servers read no directory of Debian's.
#[test]
fn the_options_are_written_where_the_server_reads_them() {
    let written = |program: &str, options: &[(&str, &str)], unit: &str| {
        let tree = options.iter().fold(Tree::empty(), |tree, (file, text)| tree.file(file, text));
        let tree = tree.file(program, "").file(unit, "").wordpress();
        let said = tree.init("/var/www/blog").0;
        let (_, after) = said.split_once(" | sudo tee -a ").expect("a command");
        let mut lines = after.lines().map(|line| line.trim().to_owned());
        [(); 2].map(|()| lines.next().expect("a command"))
    };
    let restart = |service: &str| format!("sudo systemctl restart {service}");
    let main = ("/etc/my.cnf", "[client-server]\n!includedir /etc/my.cnf.d\n");
    let server = ("/etc/my.cnf.d/mariadb-server.cnf", "[mysqld]\nbinlog_format = MIXED\n");
    let last = "/etc/my.cnf.d/zz-pagewell.cnf".to_owned();
    let unit = "/usr/lib/systemd/system/mysqld.service";
    let of_rhel = [main, server];
    assert_eq!(
        written("/usr/libexec/mariadbd", &of_rhel, "/x"),
        [last.clone(), restart("mariadb")]
    );
    assert_eq!(written("/usr/libexec/mysqld", &of_rhel, unit), [last, restart("mysqld")]);
    let alone = [("/etc/my.cnf", "[mysqld]\n")];
    assert_eq!(
        written("/usr/sbin/mysqld", &alone, "/x"),
        ["/etc/my.cnf".to_owned(), restart("mysql")]
    );
}

#[test]
fn options_that_are_there_stay_when_the_missing_ones_are_written() {
    const FILE: &str = "/etc/mysql/mariadb.conf.d/60-pagewell.cnf";
    let before = "[mariadb]\nlog_bin\nserver_id = 1\n";
    let tree = Tree::with_php().wordpress().file(FILE, before);
    let said = tree.init("/var/www/blog").0;
    let command = said.lines().find(|line| line.contains("printf ")).expect("a command");
    let real = tree.real(FILE);
    let command = command.replace("sudo ", "").replace(FILE, &real.display().to_string());
    assert!(Command::new("sh").args(["-c", &command]).status().expect("sh runs").success());
    let wanted = format!("{before}[mariadb]\nbinlog_format = ROW\n");
    assert_eq!(fs::read_to_string(real).expect("the file"), wanted);
    let dry = InitArgs { dry_run: true, ..tree.args("/var/www/blog") };
    assert!(!init::run(&dry, None).expect("a site").contains("printf "));
}

#[test]
fn mysql_has_its_own_client_and_privileges() {
    let tree = Tree::with_php().wordpress().file("/usr/sbin/mysqld", "");
    fs::remove_file(tree.real("/usr/sbin/mariadbd")).expect("it is there");
    let said = tree.init("/var/www/blog").0;
    let create = said.lines().find(|line| line.contains("CREATE USER")).expect("a command");
    assert!(create.ends_with(" | sudo mysql"), "{create}");
    let grant = "GRANT REPLICATION SLAVE, REPLICATION CLIENT, XA_RECOVER_ADMIN ON *.* TO";
    assert!(create.contains(grant), "{create}");
    assert!(said.contains("printf '%s\\n' '[mysqld]' 'gtid_mode = ON'"), "{said}");
    assert!(said.contains("MySQL was tried with version 9.7 only"), "{said}");
    assert!(!said.contains("sudo mariadb"), "{said}");

    let said = Tree::with_php().wordpress().init("/var/www/blog").0;
    assert!(said.contains("GRANT REPLICATION SLAVE ON *.*") && said.contains(" | sudo mariadb"));
    assert!(!said.contains("MySQL was tried"), "{said}");
}

/// The steps were followed before, but the server was not restarted with its change stream.
#[test]
fn a_password_that_exists_is_not_replaced() {
    let tree =
        Tree::with_php().wordpress().file("/etc/pagewell/database-password", "of the first time\n");
    let said = tree.init("/var/www/blog").0;
    assert!(said.contains("binlog_format = ROW"), "{said}");
    assert!(!said.contains("CREATE USER") && !said.contains("/dev/urandom"), "{said}");
    assert!(said.contains("/^#\\[\\[database/"), "{said}");
    assert!(said.contains("[automatic]: the record of a trial begins again."), "{said}");
    // Where the database is followed already, the configuration does not change.
    let said = Tree::with_php().with_followed_database().wordpress().init("/var/www/blog").0;
    assert!(!said.contains("begins again"), "{said}");
}

/// The account is that of another site, whose database alone it may read.
#[test]
fn the_account_that_exists_may_read_the_database_of_this_site() {
    let grant = "echo \"GRANT SELECT ON \\`blog\\`.* TO pagewell@localhost;\" | sudo mariadb";
    let without_stream = Tree::with_php().file("/etc/pagewell/database-password", "first\n");
    for tree in [without_stream, Tree::with_php().with_followed_database()] {
        let said = tree.wordpress().init("/var/www/blog").0;
        assert!(said.contains(grant) && !said.contains("CREATE USER"), "{said}");
    }
    let config = "<?php define('DB_NAME', 'my_blog'); define('DB_HOST', '10.1.2.3');\n\
                  $table_prefix = 'wp_';";
    let tree = Tree::with_php().with_followed_database().wordpress();
    let said = tree.file("/var/www/blog/wp-config.php", config).init("/var/www/blog").0;
    let grant = "GRANT SELECT ON `my\\_blog`.* TO pagewell@'ADDRESS OF THIS MACHINE';".to_owned();
    assert!(steps(&said).contains(&vec![grant]), "{said}");
    assert!(!said.contains("/dev/urandom") && !said.contains("sudo mariadb"), "{said}");
}

#[test]
fn the_account_of_a_database_on_another_machine_is_not_created_on_this_one() {
    let config = "<?php define('DB_NAME', 'my_blog'); define('DB_HOST', '10.1.2.3');\n\
                  $table_prefix = 'wp_';";
    let tree = Tree::with_php().wordpress().file("/var/www/blog/wp-config.php", config);
    let said = tree.init("/var/www/blog").0;
    assert!(!said.contains("sudo mariadb"), "{said}");
    let statements = steps(&said).into_iter().find(|lines| lines.concat().contains("GRANT"));
    assert_eq!(
        statements.expect("statements"),
        [
            "CREATE USER pagewell@'ADDRESS OF THIS MACHINE' IDENTIFIED BY 'THAT PASSWORD';",
            "GRANT REPLICATION SLAVE ON *.* TO pagewell@'ADDRESS OF THIS MACHINE';",
            "GRANT SELECT ON `my\\_blog`.* TO pagewell@'ADDRESS OF THIS MACHINE';",
        ]
    );
}
