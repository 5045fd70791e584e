//! Automatic dependencies of an application without a hook: its connections are relayed, a row that a page has
//! read purges the page, and another row does not.

use super::logging;
use crate::paper::{get, post, shows, stored};
use acceptance::{Site, is_hit};

const DB: &str = "<?php $db = new PDO('mysql:host=localhost;dbname=paper', 'writer', 'secret',
    [PDO::ATTR_PERSISTENT => true, PDO::ATTR_EMULATE_PREPARES => false]);";

/// A page without caching headers, by a prepared statement.
const NEWS: &str =
    "<?php require 'db.php'; $news = $db->prepare('SELECT title FROM news WHERE id = ?');
    $news->execute([$_GET['id']]); echo $news->fetchColumn();";

const RENAME: &str = "<?php require 'db.php';
    $db->prepare('UPDATE news SET title = ? WHERE id = ?')->execute([$_GET['title'], $_GET['id']]); echo 'done';";

#[test]
fn rows_that_a_page_has_read_purge_it() {
    let database = logging(None, &["--server-id=1"]);
    database.create_database("paper", "writer", "secret").expect("a database");
    database.create_follower("localhost", "paper").expect("an account");
    let tables = "CREATE TABLE news (id INT PRIMARY KEY, title VARCHAR(50));
        INSERT INTO news VALUES (1, 'one'), (2, 'two');";
    database.sql_in("paper", tables).expect("tables");
    let site = Site::new(&[
        ("db.php", DB),
        ("news.php", NEWS),
        ("rename.php", RENAME),
        ("static.php", "<?php echo 'static';"),
    ]);
    let socket = database.socket().display();
    let pagewell = site.serve(&format!(
        "[[database]]\nurl = \"mysql://follower:secret@localhost/paper?socket={socket}\"\n\
         barrier = \"20s\"\nlag_max = \"60s\"\n[automatic]\nenabled = true\n"
    ));
    for id in [1, 2] {
        stored(&pagewell, &format!("/news.php?id={id}"));
    }
    // At the SQL prompt, and by the application, which sees its own write.
    database.sql_in("paper", "UPDATE news SET title = 'new' WHERE id = 1").expect("written");
    shows(&pagewell, "/news.php?id=1", "new");
    assert!(is_hit(&get(&pagewell, "/news.php?id=2")));
    stored(&pagewell, "/news.php?id=1");
    post(&pagewell, "/rename.php?id=2&title=second");
    assert_eq!(get(&pagewell, "/news.php?id=2").text(), "second");
    assert!(is_hit(&get(&pagewell, "/news.php?id=1")));
    // Nothing is known of a page without a connection.
    for _ in 0..3 {
        assert!(!is_hit(&get(&pagewell, "/static.php")));
    }
}
