//! A wiki while crawlers have the only place at PHP: its editors sign in, and their pages come. The extension confirms a
//! session by its field in the response to the login, before the first page.

use super::editor::{exchange, form};
use crate::held_place::{HeldPlace, ONE_PLACE, cookies, is_deferred, send};
use acceptance::mediawiki::{HOST, PASSWORD, Wiki};
use acceptance::{BOUND, client, counter, until};
use harness::{MariaDbOptions, Pagewell, PrivateDir, Request, install_plugin, root};
use std::path::Path;

/// A wiki with the extension behind a Pagewell with one place. Both are kept with its directory.
fn start() -> (Wiki, Pagewell, PrivateDir) {
    let wiki = Wiki::start(MariaDbOptions::default(), "");
    let (root, ini) = (wiki.root(), wiki.ini());
    let extensions = Path::new(&root).join("extensions");
    install_plugin(&root::repository(), "mediawiki", &extensions).expect("the extension");
    HeldPlace::install(Path::new(&root));
    let dir = PrivateDir::temporary("crawled").expect("a directory");
    let file = dir.path().join("pagewell.toml");
    let text = format!(
        "{ONE_PLACE}[site]\nroot = {root:?}\n[php]\nchildren = 2\n[php.env]\nMW_INSTALL_PATH = {root:?}\n[php.ini]\n{ini}"
    );
    std::fs::write(&file, text).expect("written");
    let args = [format!("--config={}", file.display()), "--memory=64M".to_owned()];
    let pagewell = Pagewell::start(acceptance::binary(), &args).expect("pagewell starts");
    wiki.set(&format!(
        "wfLoadExtension( 'Pagewell', {:?} );\n$wgPagewellAdmin = '{}';\n$wgJobRunRate = 0;\n$wgSessionCacheType = CACHE_DB;",
        extensions.join("Pagewell/extension.json").display(),
        pagewell.admin(),
    ));
    (wiki, pagewell, dir)
}

#[test]
fn editors_sign_in_and_see_their_pages_while_the_wiki_is_crawled() {
    let (wiki, pagewell, _dir) = start();
    let client = || client(&pagewell).host(HOST).within(BOUND);
    let waits = || counter(&pagewell, "origin_queue");
    let take = |number| HeldPlace::take(client(), Path::new(&wiki.root()), number);
    let search = |text: &str| format!("/index.php?search={text}&fulltext=1");

    let token = Request::get("/api.php?action=query&meta=tokens&type=login&format=json");
    let (token, guest) = exchange(&mut client(), &token);
    let token = token["query"]["tokens"]["logintoken"].as_str().expect("a token").to_owned();
    let held = take(1);
    is_deferred(&client().get(&search("crawled")).expect("an answer"));
    let fields = [
        ("action", "login"),
        ("format", "json"),
        ("lgname", "Admin"),
        ("lgpassword", PASSWORD),
        ("lgtoken", &token),
    ];
    let login = Request::form("/api.php", &form(&fields)).header("Cookie", &guest);
    let login = send(client(), login);
    until("the login waits", || waits() >= 1);
    is_deferred(&client().get(&search("again")).expect("an answer"));
    held.release();
    let login = login.join().expect("it ended");
    assert!(login.text().contains("Success"), "{}", login.text());
    assert_eq!(login.header("x-pagewell-refusal"), Some("signed-in"));
    let session = cookies(&login);

    // The first page waits for a place as long as it takes. With an invented session it does not.
    let held = take(2);
    let page = |cookies: &str| Request::get("/index.php?title=Ferry").header("Cookie", cookies);
    let own = send(client(), page(&session));
    until("the editor's page waits", || waits() >= 1);
    let invented = session.replace("_session=", "_session=0");
    assert_ne!(invented, session);
    is_deferred(&client().send(&page(&invented)).expect("an answer"));
    assert!(waits() >= 1, "it waits on");
    held.release();
    let own = own.join().expect("it ended").text();
    assert!(own.contains("\"wgUserName\":\"Admin\""), "{own}");
}
