//! LiteSpeed's ESI with php-fpm: an application that writes what LiteSpeed's plugin for WordPress writes
//! (`litespeed_esi/index.php`). Signed-in visitors share a page, and nobody sees the fragments of another.
//! Single rules are tested in `tests/scenarios/litespeed`.

use acceptance::{Site, binary, cache_status, client, is_hit};
use harness::{Address, Pagewell, Request, Response};
use std::process::Command;

const APPLICATION: &str = include_str!("litespeed_esi/index.php");
const ON: &str = "[dialects]\nlitespeed_esi = true\n[php]\nchildren = 4\n";

/// A visitor: the name that the application shows, and the cookies.
struct Visitor {
    name: &'static str,
    cookies: &'static str,
}

const ERIN: Visitor = Visitor {
    name: "Erin",
    cookies: "_lscache_vary=ad938ac476e72ab7c18151eed80d9933; \
              wordpress_logged_in_fe788ec8=erin%7C1795380427%7C5SzN0P9avFMfUS5a6EjgFAAluv45Zuan",
};
const CARL: Visitor = Visitor {
    name: "Carl",
    cookies: "_lscache_vary=ad938ac476e72ab7c18151eed80d9933; \
              wordpress_logged_in_fe788ec8=carl%7C1795380427%7CQk2N0P9avFMfUS5a6EjgFAAluv45Zuan",
};
const ADMIN: Visitor = Visitor {
    name: "Admin",
    cookies: "_lscache_vary=3cf01c1ed2ab284176b9ac7b8f6134f5; \
              wordpress_logged_in_fe788ec8=admin%7C1795380428%7CwXdj8DObA4zhEHI8YhBHX3dNiub0KDYz",
};

struct Blog {
    pagewell: Pagewell,
    /// Removed at the end.
    _site: Site,
}

impl Blog {
    fn start() -> Blog {
        let site = Site::new(&[("index.php", APPLICATION)]);
        let pagewell = site.serve(ON);
        let blog = Blog { pagewell, _site: site };
        for (name, value) in [("title", "First"), ("recent", "Old"), ("tick", "1")] {
            blog.set(name, value);
        }
        blog
    }

    fn get(&self, path: &str, cookies: Option<&str>) -> Response {
        let request = Request::get(path);
        let request = match cookies {
            Some(cookies) => request.header("Cookie", cookies),
            None => request,
        };
        client(&self.pagewell).send(&request).expect("an answer")
    }

    /// The page as this visitor sees it. Everything in it that is personal must be the visitor's.
    fn page(&self, visitor: &Visitor) -> Page {
        let response = self.get("/a-post/", Some(visitor.cookies));
        let (text, name) = (response.text(), visitor.name);
        let log =
            || format!("{name}: {}\n{text}\n{}", cache_status(&response), self.pagewell.log());
        let bar = format!("<div id=\"wpadminbar\">Howdy, {name} on /a-post/</div>");
        for part in [bar, format!("Logged in as {name}<"), format!("mine is {name}<")] {
            assert_eq!(text.matches(&part).count(), 1, "{part} for {}", log());
        }
        for other in [&ERIN, &CARL, &ADMIN].into_iter().filter(|other| other.name != name) {
            assert!(!text.contains(other.name), "{} for {}", other.name, log());
        }
        assert!(!text.replace(" esi end", "").contains("esi"), "an element for {}", log());
        assert_eq!(response.header("cache-control"), Some("private, no-cache"));
        assert_eq!(response.header("x-litespeed-cache-control"), None);
        Page::of(&response)
    }

    fn set(&self, name: &str, value: &str) {
        let path = format!("/{name}/{value}");
        let response = client(&self.pagewell).post(&path, "").expect("an answer");
        assert_eq!((response.status, response.text().as_str()), (200, "done"));
    }
}

/// The parts of a page that show what was rendered for it.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    title: String,
    /// The number of the page's render.
    render: String,
    nonce: String,
    widget: String,
    is_hit: bool,
}

impl Page {
    fn of(response: &Response) -> Page {
        let text = response.text();
        let between = |begin: &str, end: &str| {
            let rest = text.split_once(begin).unwrap_or_else(|| panic!("{begin} in {text}")).1;
            rest.split_once(end).unwrap_or_else(|| panic!("{end} in {text}")).0.to_owned()
        };
        Page {
            title: between("<h1>", "</h1>"),
            render: between("<i>", "</i>"),
            nonce: between("{\"nonce\":\"", "\"}"),
            widget: between("<ul>", "</ul>"),
            is_hit: is_hit(response),
        }
    }
}

#[test]
fn signed_in_visitors_share_a_page_with_their_own_fragments() {
    let blog = Blog::start();
    let (erin, carl) = (blog.page(&ERIN), blog.page(&CARL));
    assert!(!erin.is_hit && !carl.is_hit, "the application has to confirm both: {erin:?} {carl:?}");
    let (erin, carl, admin) = (blog.page(&ERIN), blog.page(&CARL), blog.page(&ADMIN));
    assert!(erin.is_hit && carl.is_hit && !admin.is_hit, "{erin:?} {carl:?} {admin:?}");
    assert_eq!(erin.render, carl.render, "a page of one role is shared");
    assert_ne!(erin.render, admin.render, "roles have pages of their own");
    assert!(erin.nonce != carl.nonce && erin.nonce.len() == 10, "{erin:?} {carl:?}");
    assert_eq!(erin.widget, carl.widget, "a public fragment is shared");
    let stranger = Page::of(&blog.get("/a-post/", None));
    let hit = Page::of(&blog.get("/a-post/", None));
    assert!(hit.is_hit && hit.render == stranger.render && hit.render != erin.render, "{hit:?}");
    assert_eq!(hit.nonce, stranger.nonce);

    blog.set("recent", "New");
    let with_widget = blog.page(&CARL);
    assert!(with_widget.widget.starts_with("New ") && with_widget.is_hit, "{with_widget:?}");
    assert_eq!(with_widget.render, erin.render, "the page around it stays");
    blog.set("tick", "2");
    let with_nonce = blog.page(&ERIN);
    assert!(with_nonce.nonce != erin.nonce && with_nonce.is_hit, "{with_nonce:?}");
    assert_ne!(Page::of(&blog.get("/a-post/", None)).nonce, stranger.nonce);
    blog.set("title", "Second");
    for visitor in [&ERIN, &CARL, &ADMIN] {
        assert_eq!(blog.page(visitor).title, "Second", "{}", visitor.name);
    }
    assert_eq!(Page::of(&blog.get("/a-post/", None)).title, "Second");
    assert!(blog.page(&ERIN).is_hit && blog.page(&ADMIN).is_hit, "{}", blog.pagewell.log());
}

/// A visitor whose session is not valid, or is not of the role in the vary cookie, gets nothing that is stored
/// for those who are signed in.
#[test]
fn an_invented_session_gets_no_page_of_signed_in_visitors() {
    let blog = Blog::start();
    blog.page(&ADMIN);
    let shared = blog.page(&ADMIN);
    assert!(shared.is_hit, "{shared:?}");
    let role = "_lscache_vary=3cf01c1ed2ab284176b9ac7b8f6134f5";
    let invented = format!("{role}; wordpress_logged_in_fe788ec8=admin%7C1%7Cinvented-invented");
    let other_role = ERIN.cookies.replace("ad938ac476e72ab7c18151eed80d9933", &role[14..]);
    for cookies in [&invented, &other_role] {
        for _ in 0..2 {
            let response = blog.get("/a-post/", Some(cookies));
            let page = Page::of(&response);
            assert!(!page.is_hit && page.render != shared.render, "{cookies}: {page:?}");
            assert!(response.header("set-cookie").is_some(), "the vary cookie is corrected");
            assert!(!response.text().contains("Admin"), "{}", response.text());
        }
    }
    assert_eq!(blog.page(&ADMIN).render, shared.render, "and it stays");
}

/// PHP prints a cookie into the page and into a public fragment. A visitor who sends it sees it, and no other
/// visitor of the role does, whether the cookie is unknown or on the list of those for scripts.
#[test]
fn a_cookie_of_one_visitor_is_not_in_the_page_of_the_role() {
    let blog = Blog::start();
    let get = |visitor: &Visitor, more: &str| {
        let response = blog.get("/a-post/", Some(&format!("{}{more}", visitor.cookies)));
        (response.text(), cache_status(&response).to_owned())
    };
    for (cookie, may_be_seen) in [("; theme=evil", true), ("; cmplz_theme=evil", false)] {
        let (text, status) = get(&ERIN, cookie);
        assert!(text.contains("<body class=\"evil\">"), "{cookie}: {text}");
        assert!(!status.contains("stored"), "{cookie}: {status}");
        for _ in 0..2 {
            let (text, status) = get(&ERIN, cookie);
            assert!(!status.contains("stored") || !text.contains("evil"), "{cookie}: {status}");
            assert!(may_be_seen || !text.contains("evil"), "{cookie}: {text}");
        }
        for visitor in [&CARL, &ERIN, &CARL] {
            let (text, status) = get(visitor, "");
            assert!(!text.contains("evil"), "{cookie}: {status}: {text}");
        }
        blog.set("title", "next");
        blog.set("recent", "next");
    }
    let (text, status) = get(&CARL, "; theme=evil");
    assert!(text.contains("evil") && status.contains("cookie-not-in-key"), "{status}: {text}");
    let (text, status) = get(&CARL, "");
    assert!(status.contains("stored") && !text.contains("evil"), "{status}: {text}");
}

/// `pagewell explain` knows the page of the role, and shows no value of a cookie.
#[test]
fn the_page_of_the_role_is_explained() {
    let blog = Blog::start();
    let explain = |visitor: Option<&Visitor>| {
        let Address::Tcp(admin) = blog.pagewell.admin() else { panic!("a TCP address") };
        let mut command = Command::new(binary());
        command.args(["explain", "/a-post/", "--admin", &admin.to_string()]);
        for cookie in visitor.into_iter().flat_map(|visitor| visitor.cookies.split("; ")) {
            command.args(["--cookie", cookie]);
        }
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let none = explain(Some(&ERIN));
    assert!(none.contains("no fresh page is cached for signed-in visitors"), "{none}");
    blog.page(&ERIN);
    let erin = explain(Some(&ERIN));
    assert!(erin.contains("hit ") && erin.contains("signed-in visitors with the same"), "{erin}");
    assert!(erin.contains("vary _lscache_vary=…\n"), "{erin}");
    assert!(erin.contains("a7f_Po.301") && !erin.contains("1795380427"), "{erin}");
    let carl = explain(Some(&CARL));
    assert!(carl.contains("has not confirmed the visitor's cookies"), "{carl}");
    let stranger = explain(None);
    assert!(stranger.contains("1 other page is cached for signed-in visitors"), "{stranger}");
}

/// An element in the text of somebody else is text, unless the response has `esi=on`.
#[test]
fn an_element_in_a_comment_is_text() {
    let blog = Blog::start();
    for cookies in [None, Some(ERIN.cookies)] {
        let text = blog.get("/comment-only", cookies).text();
        assert!(text.starts_with("A comment: <esi:include src='/?lsesi=admin-bar"), "{text}");
    }
}

/// Visitors at the same time, while pages and fragments are purged.
#[test]
fn private_fragments_stay_private_while_pages_are_purged() {
    let blog = Blog::start();
    std::thread::scope(|scope| {
        for visitor in [&ERIN, &CARL, &ADMIN, &ERIN] {
            let blog = &blog;
            scope.spawn(move || (0..40).for_each(|_| drop(blog.page(visitor))));
        }
        for round in 0..24 {
            blog.set(["title", "recent", "tick"][round % 3], &format!("round{round}"));
        }
    });
}
