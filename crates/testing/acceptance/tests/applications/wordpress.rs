//! Debian's WordPress with the plugin of `php/wordpress`, behind the real binary: which pages each write
//! refreshes and which stay cached; which users never get or create a shared page.
//!
//! Tests share one blog, because its creation takes seconds. Each fills the cache first, and checks the hits after its
//! write, which is acknowledged once it has taken effect. `php/wordpress/tests/site/install.php` defines its content.
//! Every tenth hit is audited, and after each test nothing was found.

mod crawled;
mod followed;
mod published_later;

use acceptance::{BOUND, cache_status, client, is_hit};
use harness::{Client, Pagewell, PrivateDir, Request, Response, WordPress, free_port};
use serde_json::{Value, json};
use std::ops::Deref;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Pages that are cached. Each post shows the titles of its neighbours, in this order.
const KEPT: [&str; 9] = [
    "/",
    "/ferry/",
    "/gull/",
    "/tug/",
    "/about/",
    "/category/ships/",
    "/category/birds/",
    "/author/ada/",
    "/feed/",
];

struct Blog {
    pagewell: Pagewell,
    wordpress: WordPress,
    _dir: PrivateDir,
}

/// The shared blog while one test has it.
struct SharedBlog(MutexGuard<'static, Blog>);

impl Deref for SharedBlog {
    type Target = Blog;

    fn deref(&self) -> &Blog {
        &self.0
    }
}

impl Drop for SharedBlog {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            acceptance::audit_found_nothing(&self.pagewell, &[]);
        }
    }
}

/// The blog, for one test at a time, with every cacheable page in the cache.
fn blog() -> SharedBlog {
    static BLOG: OnceLock<Mutex<Blog>> = OnceLock::new();
    let blog = BLOG.get_or_init(|| Mutex::new(Blog::start(|_| String::new())));
    let blog = blog.lock().unwrap_or_else(PoisonError::into_inner);
    blog.fill();
    SharedBlog(blog)
}

impl Blog {
    /// `more` returns additional lines for the configuration of the blog's Pagewell.
    fn start(more: impl Fn(&WordPress) -> String) -> Blog {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let admin = format!("127.0.0.1:{}", free_port().expect("a free port"));
        let wordpress = WordPress::start(&repository, &admin).expect("the blog starts");
        let dir = PrivateDir::temporary("blog").expect("a directory can be made");
        let config = dir.path().join("pagewell.toml");
        let text = format!("audit = \"1 in 10\"\n{}", more(&wordpress));
        std::fs::write(&config, text).expect("a file can be written");
        let mut args = wordpress.serve_args();
        args.extend(["--memory=64M".into(), format!("--admin={admin}")]);
        args.extend(["--config".into(), config.display().to_string()]);
        let pagewell = Pagewell::start(acceptance::binary(), &args).expect("pagewell starts");
        Blog { pagewell, wordpress, _dir: dir }
    }

    fn client(&self) -> Client {
        client(&self.pagewell).host("blog.test").within(BOUND)
    }

    fn get(&self, path: &str) -> Response {
        self.client().get(path).expect("an answer")
    }

    fn get_with(&self, path: &str, name: &str, value: &str) -> Response {
        self.client().send(&Request::get(path).header(name, value)).expect("an answer")
    }

    fn text(&self, path: &str) -> String {
        self.get(path).text()
    }

    fn keeps(&self, path: &str) -> bool {
        self.get(path);
        is_hit(&self.get(path))
    }

    fn fill(&self) {
        for path in KEPT {
            let page = self.get(path);
            let refusal = page.header("x-pagewell-refusal");
            assert_eq!((page.status, refusal), (200, None), "{path}: {}", page.text());
            assert!(self.keeps(path), "{path}: {}\n{}", cache_status(&page), self.pagewell.log());
        }
    }

    /// Requests every cacheable page, and returns those that were hits.
    fn hits(&self) -> Vec<&'static str> {
        KEPT.into_iter().filter(|path| is_hit(&self.get(path))).collect()
    }

    /// Requests every cacheable page, and returns those that were not hits.
    fn new_pages(&self) -> Vec<&'static str> {
        KEPT.into_iter().filter(|path| !is_hit(&self.get(path))).collect()
    }

    /// Runs PHP code as a shell command would.
    fn command(&self, php: &str) -> String {
        let code = format!("require 'wp-load.php'; {php}");
        self.wordpress.command(&code).expect("the command succeeds")
    }

    fn comment(&self, slug: &str, words: &str) -> Response {
        let post = self.id(slug);
        let fields =
            format!("comment_post_ID={post}&author=Joe&email=joe%40blog.test&url=&comment={words}");
        let response = self.client().post("/wp-comments-post.php", &fields).expect("an answer");
        assert_eq!(response.status, 302, "{}", response.text());
        response
    }

    fn id(&self, slug: &str) -> String {
        let query = format!(
            "SELECT ID FROM wp_posts WHERE post_name = '{slug}' AND post_type IN ('post', 'page')"
        );
        let rows = self.wordpress.database().sql_in("wordpress", &query).expect("rows");
        rows.trim().to_owned()
    }
}

/// The remaining lifetime of a hit in seconds.
fn lifetime(hit: &Response) -> u32 {
    let seconds = cache_status(hit).split("ttl=").nth(1).and_then(|text| text.split(';').next());
    seconds.and_then(|text| text.parse().ok()).expect("a lifetime")
}

/// The administrator, logged in.
struct Editor<'a> {
    blog: &'a Blog,
    cookie: String,
    nonce: String,
}

impl Editor<'_> {
    fn sign_in(blog: &Blog) -> Editor<'_> {
        let form = Request::form("/wp-login.php", "log=admin&pwd=secret-of-admin&testcookie=1");
        let form = form.header("Cookie", "wordpress_test_cookie=WP%20Cookie%20check");
        let response = blog.client().send(&form).expect("an answer");
        assert_eq!(response.status, 302, "{}", response.text());
        let pairs = response.all("set-cookie").filter_map(|line| line.split(';').next());
        let cookie = pairs.collect::<Vec<_>>().join("; ");
        let mut editor = Editor { blog, cookie, nonce: String::new() };
        editor.nonce = editor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text();
        assert_eq!(editor.nonce.len(), 10, "{}", editor.nonce);
        editor
    }

    fn get(&self, path: &str) -> Response {
        let request = Request::get(path).header("Cookie", &self.cookie);
        self.blog.client().send(&request).expect("an answer")
    }

    fn rest(&self, method: &str, path: &str, what: &Value) -> Value {
        let request = Request::new(method, &format!("/wp-json/wp/v2/{path}"))
            .header("Cookie", &self.cookie)
            .header("X-WP-Nonce", &self.nonce)
            .header("Content-Type", "application/json")
            .content(what.to_string().as_bytes());
        let response = self.blog.client().send(&request).expect("an answer");
        assert!((200..300).contains(&response.status), "{path}: {}", response.text());
        serde_json::from_slice(&response.content).expect("JSON")
    }

    /// Follows a link that contains `part` on an admin page: such links write by GET.
    fn follow(&self, page: &str, part: &str) -> Response {
        let text = self.get(page).text().replace("&amp;", "&").replace("&#038;", "&");
        let mut links = text.split(['"', '\'']).filter(|link| link.contains(part));
        let link = links.next().unwrap_or_else(|| panic!("no link to {part} in {page}"));
        let path = link.strip_prefix("http://blog.test").map(str::to_owned);
        self.get(&path.unwrap_or_else(|| format!("/wp-admin/{link}")))
    }
}

#[test]
fn a_page_is_rendered_once_and_then_a_hit() {
    let blog = blog();
    blog.pagewell.invalidate(r#"{"all":true}"#).expect("an answer");
    for path in KEPT {
        let first = blog.get(path);
        assert!(!is_hit(&first), "{path}: {}", cache_status(&first));
        for name in ["surrogate-key", "pagewell-cache-control", "set-cookie"] {
            assert_eq!(first.header(name), None, "{path}");
        }
        let second = blog.get(path);
        assert!(is_hit(&second), "{path}: {}", cache_status(&second));
        // A nonce in a form is valid for at least twelve hours.
        let seconds = lifetime(&second);
        assert!(seconds > 3600 && seconds <= 36_000, "{path}: {seconds}");
        assert_eq!(second.content, first.content, "{path}");
    }
}

#[test]
fn publishing_refreshes_the_lists_and_neighbours_only() {
    let blog = blog();
    let editor = Editor::sign_in(&blog);
    assert_eq!(blog.get("/lighthouse/").status, 404);
    assert!(is_hit(&blog.get("/lighthouse/")), "that there is no such page is kept, too");
    assert!(blog.keeps("/buoy/") && blog.keeps("/tern/"));
    let ships = blog.command("echo get_term_by('slug', 'ships', 'category')->term_id;");
    let draft = json!({"title": "Lighthouse lit", "slug": "lighthouse", "content": "At last.",
                       "status": "draft", "categories": [ships.parse::<u32>().expect("an id")]});
    let post = editor.rest("POST", "posts", &draft);
    let path = format!("posts/{}", post["id"]);
    editor.rest("POST", &path, &json!({"content": "At long last."}));
    assert_eq!(blog.hits(), KEPT, "a draft changes nothing");

    editor.rest("POST", &path, &json!({"status": "publish"}));
    assert!(!is_hit(&blog.get("/buoy/")), "it shows what comes after it");
    assert!(is_hit(&blog.get("/tern/")));
    assert_eq!(blog.new_pages(), ["/", "/category/ships/", "/feed/"]);
    for list in ["/", "/category/ships/", "/feed/", "/buoy/"] {
        assert!(blog.text(list).contains("Lighthouse lit"), "{list}");
    }
    assert_eq!(blog.get("/lighthouse/").status, 200);

    editor.rest("DELETE", &path, &json!({}));
    assert_eq!(blog.get("/lighthouse/").status, 404);
    assert_eq!(blog.new_pages(), ["/", "/category/ships/", "/feed/"]);
    assert!(!blog.text("/buoy/").contains("Lighthouse lit"));
}

#[test]
fn an_edit_refreshes_the_pages_that_show_the_post() {
    let blog = blog();
    let editor = Editor::sign_in(&blog);
    let path = format!("posts/{}", blog.id("gull"));
    editor.rest("POST", &path, &json!({"title": "Two gulls were seen"}));
    let new = ["/", "/ferry/", "/gull/", "/tug/", "/category/birds/", "/author/ada/", "/feed/"];
    for page in new {
        assert!(blog.text(page).contains("Two gulls were seen"), "{page}");
    }
    blog.fill();
    editor.rest("POST", &path, &json!({"title": "A gull was seen"}));
    assert_eq!(blog.new_pages(), new);
    editor.rest("POST", &path, &json!({"title": "A gull was seen"}));
    let page = format!("pages/{}", blog.id("about"));
    blog.fill();
    editor.rest("POST", &page, &json!({"content": "Who we really are."}));
    assert_eq!(blog.new_pages(), ["/about/"], "the menu shows its name, which is as it was");
    assert!(blog.text("/about/").contains("Who we really are."));
}

#[test]
fn a_post_moves_between_categories() {
    let blog = blog();
    let ferry = blog.id("ferry");
    let set =
        |slug: &str| blog.command(&format!("wp_set_object_terms({ferry}, '{slug}', 'category');"));
    set("birds");
    let new = blog.new_pages();
    assert_eq!(new, ["/", "/ferry/", "/category/ships/", "/category/birds/", "/feed/"]);
    assert!(blog.text("/category/birds/").contains("The ferry is late"));
    assert!(!blog.text("/category/ships/").contains("The ferry is late"));
    set("ships");
    assert!(blog.text("/category/ships/").contains("The ferry is late"));
}

#[test]
fn a_comment_appears_when_it_is_approved() {
    let blog = blog();
    let editor = Editor::sign_in(&blog);
    let response = blog.comment("tug", "Well+tugged");
    assert_eq!(blog.hits(), KEPT, "it waits to be approved");
    // Only its author sees it.
    let location = response.header("location").expect("where it is").to_owned();
    let own = location.strip_prefix("http://blog.test").expect("a path");
    for _ in 0..2 {
        let page = blog.get(own.split('#').next().unwrap_or(own));
        assert!(page.text().contains("Well tugged"));
        assert_eq!(page.header("x-pagewell-refusal"), Some("unapproved-comment"));
        assert!(!cache_status(&page).contains("stored"), "{}", cache_status(&page));
    }
    let number = own.split("comment-").nth(1).expect("its number");
    let path = format!("comments/{number}");
    let mut shown = false;
    let steps = [
        (json!({"status": "approved"}), "Well tugged", true),
        (json!({"content": "Well put"}), "Well put", true),
        (json!({"status": "hold"}), "Well put", false),
        (json!({"status": "approved"}), "Well put", true),
        (json!({"status": "spam"}), "Well put", false),
    ];
    for (change, words, is_shown) in steps {
        editor.rest("POST", &path, &change);
        assert_eq!(blog.new_pages(), ["/tug/", "/feed/"], "{change}: the feed shows how many");
        assert_eq!(blog.text("/tug/").contains(words), is_shown, "{change}");
        shown = is_shown;
    }
    assert!(!shown);
    editor.rest("DELETE", &format!("{path}?force=true"), &json!({}));
    assert_eq!(blog.hits(), KEPT, "spam that is deleted was not seen");
}

#[test]
fn a_menu_a_term_and_a_name_reach_the_pages_that_show_them() {
    let blog = blog();
    let editor = Editor::sign_in(&blog);
    let menus = editor.rest("GET", "menus", &json!({}));
    let item = json!({"title": "The weather", "url": "http://weather.test/", "status": "publish",
                      "type": "custom", "menus": menus[0]["id"]});
    editor.rest("POST", "menu-items", &item);
    assert_eq!(blog.hits(), ["/feed/"], "all pages show the menu, and the feed does not");
    assert!(blog.text("/gull/").contains("The weather"));

    blog.fill();
    let ships = blog.command("echo get_term_by('slug', 'ships', 'category')->term_id;");
    editor.rest("POST", &format!("categories/{ships}"), &json!({"name": "Vessels"}));
    assert_eq!(blog.new_pages(), ["/", "/ferry/", "/tug/", "/category/ships/", "/feed/"]);
    assert!(blog.text("/ferry/").contains("Vessels"));

    blog.fill();
    let ada = blog.command("echo get_user_by('login', 'ada')->ID;");
    editor.rest("POST", &format!("users/{ada}"), &json!({"name": "Ada Lovelace"}));
    assert!(blog.text("/author/ada/").contains("Ada Lovelace"));
    let hits = blog.hits();
    for other in ["/ferry/", "/tug/", "/about/", "/category/ships/"] {
        assert!(hits.contains(&other), "{other}: {hits:?}");
    }
    assert!(!hits.contains(&"/feed/"));
}

#[test]
fn settings_widgets_and_the_theme_reach_everything() {
    let blog = blog();
    let editor = Editor::sign_in(&blog);
    editor.rest("POST", "settings", &json!({"title": "The Quay Blog"}));
    assert_eq!(blog.hits(), [""; 0]);
    assert!(blog.text("/about/").contains("The Quay Blog"));

    blog.fill();
    blog.command(
        "update_option('widget_text', [7 => ['title' => 'Tides', 'text' => 'High at noon']]);
         update_option('sidebars_widgets', ['sidebar-1' => ['text-7'], 'array_version' => 3]);",
    );
    assert_eq!(blog.hits(), [""; 0]);
    assert!(blog.text("/gull/").contains("High at noon"));
    blog.command("update_option('sidebars_widgets', ['sidebar-1' => [], 'array_version' => 3]);");

    // A link in wp-admin writes by GET: the plugin invalidates through the control API.
    blog.fill();
    let done =
        editor.follow("/wp-admin/themes.php", "action=activate&stylesheet=twentytwentythree");
    assert_eq!(done.status, 302, "{}", done.text());
    let home = blog.get("/");
    assert!(!is_hit(&home) && home.text().contains("wp-site-blocks"), "{}", home.text());
    assert!(!is_hit(&blog.get("/about/")));
    // The first page in a new theme rearranges the widgets, which is a change.
    blog.get("/");
    blog.fill();
    editor.rest("POST", &format!("posts/{}", blog.id("buoy")), &json!({"title": "A newer buoy"}));
    assert!(blog.text("/").contains("A newer buoy"), "a theme made of blocks");
    assert!(is_hit(&blog.get("/about/")) && is_hit(&blog.get("/gull/")));

    blog.command("switch_theme('twentytwentyone');");
    blog.get("/");
    let about = blog.get("/about/");
    assert!(
        about.text().contains("themes/twentytwentyone/"),
        "{}{}",
        cache_status(&about),
        about.text()
    );
}

#[test]
fn known_users_neither_get_nor_create_a_shared_page() {
    let blog = blog();
    let editor = Editor::sign_in(&blog);
    let commenter = "comment_author_0123=Ada; comment_author_email_0123=ada%40blog.test";
    for path in KEPT {
        let own = editor.get(path);
        assert!(!is_hit(&own), "{path}: {}", cache_status(&own));
        assert!(!cache_status(&own).contains("stored"), "{path}: {}", cache_status(&own));
        assert_eq!(own.header("x-pagewell-refusal"), Some("signed-in"), "{path}");
        assert_eq!(own.text().contains("wpadminbar"), path != "/feed/", "{path}");
        let theirs = blog.get_with(path, "Cookie", commenter);
        assert!(!is_hit(&theirs), "{path}: {}", cache_status(&theirs));
        assert_eq!(theirs.header("x-pagewell-refusal"), Some("visitors-cookie"), "{path}");
        let shared = blog.get(path);
        assert!(is_hit(&shared) && !shared.text().contains("wpadminbar"), "{path}");
    }
    // They also do not get or create one when the cache is empty.
    blog.pagewell.invalidate(r#"{"all":true}"#).expect("an answer");
    for path in KEPT {
        editor.get(path);
        blog.get_with(path, "Cookie", commenter);
        blog.get_with(path, "Cookie", "wp-postpass_0123=x");
        blog.get_with(path, "Authorization", "Basic YTpi");
        blog.get_with(path, "Cookie", "theme=dark");
        assert!(!is_hit(&blog.get(path)), "{path}");
        // A client with an unknown cookie gets the shared page; one with a cookie that only scripts use also
        // creates it.
        assert!(is_hit(&blog.get_with(path, "Cookie", "theme=dark")), "{path}");
        blog.pagewell.invalidate(r#"{"all":true}"#).expect("an answer");
        blog.get_with(path, "Cookie", "_ga=GA1.1; wordpress_test_cookie=x");
        assert!(is_hit(&blog.get(path)), "{path}");
    }
}

#[test]
fn previews_protected_posts_and_admin_pages_are_not_stored() {
    let blog = blog();
    let secret = "wp_insert_post(['post_title' => 'Hush', 'post_name' => 'hush', 'post_content' => 'x',
                  'post_status' => 'publish', 'post_password' => 'pw', 'post_date' => '2026-02-01 12:00:00']);";
    blog.command(secret);
    for (path, refusal) in [("/hush/", "password"), ("/gull/?preview=true", "preview")] {
        for _ in 0..2 {
            let page = blog.get(path);
            assert!(!is_hit(&page) && !cache_status(&page).contains("stored"), "{path}");
            assert_eq!(page.header("x-pagewell-refusal"), Some(refusal), "{path}");
        }
    }
    for path in ["/wp-login.php", "/wp-admin/", "/wp-json/wp/v2/settings", "/wp-cron.php"] {
        for _ in 0..2 {
            let page = blog.get(path);
            assert!(!is_hit(&page), "{path}: {}", cache_status(&page));
            assert!(!cache_status(&page).contains("stored"), "{path}: {}", cache_status(&page));
        }
    }
    blog.command("wp_delete_post(get_page_by_path('hush', OBJECT, 'post')->ID, true);");
}

#[test]
fn writes_of_other_programs_invalidate() {
    let blog = blog();
    // XML-RPC: a POST whose response contains the invalidation.
    let call = format!(
        "<?xml version='1.0'?><methodCall><methodName>wp.editPost</methodName><params>\
         <param><value><int>1</int></value></param><param><value>admin</value></param>\
         <param><value>secret-of-admin</value></param><param><value><int>{}</int></value></param>\
         <param><value><struct><member><name>post_content</name><value>By wire.</value></member>\
         </struct></value></param></params></methodCall>",
        blog.id("ferry")
    );
    let request = Request::new("POST", "/xmlrpc.php").header("Content-Type", "text/xml");
    let answer = blog.client().send(&request.content(call.as_bytes())).expect("an answer");
    assert!(answer.text().contains("<boolean>1</boolean>"), "{}", answer.text());
    assert_eq!(blog.new_pages(), ["/", "/ferry/", "/category/ships/", "/feed/"]);
    assert!(blog.text("/ferry/").contains("By wire."));

    blog.fill();
    blog.command("stick_post(get_page_by_path('ferry', OBJECT, 'post')->ID);");
    let home = blog.text("/");
    assert!(home.find("The ferry is late") < home.find("A new"), "{home}");
    blog.command("unstick_post(get_page_by_path('ferry', OBJECT, 'post')->ID);");

    blog.fill();
    blog.command("update_post_meta(get_page_by_path('about')->ID, 'opening', 'ten to six');");
    // Its template may show it.
    assert_eq!(blog.new_pages(), ["/about/"]);
    blog.command("update_post_meta(get_page_by_path('about')->ID, '_edit_lock', '1:1');");
    blog.command("update_user_meta(1, 'metaboxhidden_post', '1');");
    blog.command("set_transient('some', 'thing'); update_option('some_plugins_note', '1');");
    assert_eq!(blog.hits(), KEPT, "what no page shows");

    let post = "wp_insert_post(['post_type' => 'wp_navigation', 'post_status' => 'publish',
                'post_title' => 'Navigation', 'post_content' => '<!-- wp:page-list /-->']);";
    blog.command(post);
    assert_eq!(blog.hits(), [""; 0], "a part of the theme");
}

#[test]
fn a_search_and_a_feed_are_refreshed_with_their_posts() {
    let blog = blog();
    let editor = Editor::sign_in(&blog);
    let path = format!("posts/{}", blog.id("tug"));
    assert!(blog.keeps("/?s=winch"));
    let etag = blog.get("/feed/").header("etag").expect("a validator").to_owned();
    assert_eq!(blog.get_with("/feed/", "If-None-Match", &etag).status, 304);
    editor.rest("POST", &path, &json!({"content": "It has a winch."}));
    assert!(blog.text("/?s=winch").contains("A tug for the port"), "it found nothing before");
    let feed = blog.get_with("/feed/", "If-None-Match", &etag);
    assert_eq!(feed.status, 200);
    assert!(feed.text().contains("It has a winch."));
    // The feed contains the name, which WordPress's own validator does not cover.
    blog.fill();
    let etag = blog.get("/feed/").header("etag").expect("a validator").to_owned();
    editor.rest("POST", "settings", &json!({"description": "News of the quay"}));
    let feed = blog.get_with("/feed/", "If-None-Match", &etag);
    assert_eq!(feed.status, 200);
    assert!(feed.text().contains("News of the quay"));
}

#[test]
fn a_scheduled_post_appears_on_time() {
    let blog = blog();
    blog.command(
        "wp_insert_post(['post_title' => 'Regatta today', 'post_name' => 'regatta',
         'post_content' => 'x', 'post_status' => 'future',
         'post_date' => gmdate('Y-m-d H:i:s', time() + 3600)]);",
    );
    let home = blog.get("/");
    assert!(!is_hit(&home) && !home.text().contains("Regatta today"));
    let seconds = lifetime(&blog.get("/"));
    assert!(seconds <= 3600, "without a timer the page goes when the post is due: {seconds}");
    blog.fill();
    blog.command(
        "global $wpdb; $id = get_posts(['name' => 'regatta', 'post_status' => 'future'])[0]->ID;
         wp_clear_scheduled_hook('publish_future_post', [$id]);
         $then = gmdate('Y-m-d H:i:s', time() - 60);
         $wpdb->update($wpdb->posts, ['post_date' => $then, 'post_date_gmt' => $then], ['ID' => $id]);
         wp_schedule_single_event(time() - 60, 'publish_future_post', [$id]);",
    );
    assert_eq!(blog.hits(), KEPT, "not yet");
    blog.wordpress.cron().expect("wp-cron runs");
    assert!(blog.text("/").contains("Regatta today"));
    assert!(blog.text("/feed/").contains("Regatta today"));
    assert!(is_hit(&blog.get("/about/")) && is_hit(&blog.get("/category/birds/")));
    blog.command("wp_delete_post(get_page_by_path('regatta', OBJECT, 'post')->ID, true);");
    assert!(!blog.text("/").contains("Regatta today"));
}

#[test]
fn a_link_that_writes_by_get_invalidates_over_the_control_api() {
    let blog = blog();
    let editor = Editor::sign_in(&blog);
    let post = json!({"title": "Flotsam", "slug": "flotsam", "content": "x", "status": "publish"});
    let id = editor.rest("POST", "posts", &post)["id"].to_string();
    assert!(blog.text("/").contains("Flotsam"));
    let page = format!("/wp-admin/post.php?post={id}&action=trash");
    let done = editor.follow("/wp-admin/edit.php", &page[10..]);
    assert_eq!(done.status, 302, "{}", done.text());
    assert!(!blog.text("/").contains("Flotsam"));
    assert_eq!(blog.get("/flotsam/").status, 404);
}

#[test]
fn the_settings_page_shows_recent_changes_and_purges_everything() {
    let blog = blog();
    let editor = Editor::sign_in(&blog);
    let page = editor.get("/wp-admin/options-general.php?page=pagewell").text();
    assert!(page.contains("Yes: this page came through it."), "{page}");
    assert!(page.contains("It answers at 127.0.0.1:"), "{page}");
    let field = page.split("name=\"_wpnonce\" value=\"").nth(1).and_then(|t| t.split('"').next());
    let nonce = field.expect("a nonce");
    let post = |fields: &str| {
        let request = Request::form("/wp-admin/admin-post.php", fields);
        blog.client().send(&request.header("Cookie", &editor.cookie)).expect("an answer")
    };
    blog.fill();
    assert_eq!(post("action=pagewell_drop").status, 403);
    assert_eq!(blog.hits(), KEPT);
    assert_eq!(post(&format!("action=pagewell_drop&_wpnonce={nonce}")).status, 302);
    assert_eq!(blog.hits(), [""; 0]);
    let page = editor.get("/wp-admin/options-general.php?page=pagewell").text();
    assert!(page.contains("on the response to the write</td><td>site<"), "{page}");
}

#[test]
fn without_the_plugin_no_page_is_stored() {
    let blog = blog();
    blog.command("require_once ABSPATH . 'wp-admin/includes/plugin.php'; deactivate_plugins('pagewell/pagewell.php');");
    // A feed has a date, from which its lifetime may be guessed.
    for path in KEPT.into_iter().filter(|path| *path != "/feed/") {
        for _ in 0..2 {
            let page = blog.get(path);
            assert!(!is_hit(&page), "{path}: {}", cache_status(&page));
            assert!(!cache_status(&page).contains("stored"), "{path}: {}", cache_status(&page));
        }
    }
    blog.command(
        "require_once ABSPATH . 'wp-admin/includes/plugin.php';
         activate_plugin('pagewell/pagewell.php');",
    );
    blog.pagewell.invalidate(r#"{"all":true}"#).expect("an answer");
}
