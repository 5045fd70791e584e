//! The changes of the test: what an editor, a visitor and an administrator of a wiki do.

/// A change, by who makes it.
#[derive(Clone, Copy)]
pub enum Change {
    /// A call of the API by the administrator.
    Editor(&'static [(&'static str, &'static str)]),
    /// A version of a file, with this content.
    Upload(&'static [u8]),
    /// A call of the API by a visitor who is not signed in.
    Visitor(&'static [(&'static str, &'static str)]),
    /// The last edits of this page, by another user, are undone.
    Rollback(&'static str),
    /// A user becomes a member of a group.
    Rights(&'static str, &'static str),
    /// The author of an old revision of this page is hidden.
    HideRevision(&'static str),
    /// A maintenance script, its arguments and its input.
    Command(&'static str, &'static [&'static str], &'static str),
    /// Nothing: no page may be purged.
    Nothing,
}

use Change::{Command, Editor, HideRevision, Nothing, Rights, Rollback, Upload, Visitor};

/// Two pictures of one pixel.
const PICTURES: [&[u8]; 2] = [
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82",
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc``\xf8\x0f\0\x01\x03\x01\0\x08\x89\xc2\xec\0\0\0\0IEND\xaeB`\x82",
];

/// All changes in their order, with names.
pub fn all() -> impl Iterator<Item = (&'static str, Change)> {
    TEXTS.into_iter().chain(PAGES).chain(SITE)
}

const TEXTS: [(&str, Change); 14] = [
    ("nothing", Nothing),
    (
        "an edit",
        Editor(&[
            ("action", "edit"),
            ("title", "Ferry"),
            ("text", "A new ferry. {{Box}} [[Category:Ships]] [[Missing]] [[File:Gull.png]]"),
        ]),
    ),
    (
        "an edit of a visitor",
        Visitor(&[("action", "edit"), ("title", "Gull"), ("text", "A big gull.")]),
    ),
    (
        "a template",
        Editor(&[
            ("action", "edit"),
            ("title", "Template:Box"),
            ("text", "In another box. [[Gull]]<includeonly>[[Category:Boxes]]</includeonly>"),
        ]),
    ),
    ("the jobs of the template", Command("runJobs.php", &[], "")),
    (
        "a page that was linked",
        Editor(&[("action", "edit"), ("title", "Missing"), ("text", "Here. [[Category:Ships]]")]),
    ),
    (
        "a new page",
        Editor(&[("action", "edit"), ("title", "Nowhere"), ("text", "Nothing to see.")]),
    ),
    ("a talk page", Editor(&[("action", "edit"), ("title", "Talk:Ferry"), ("text", "Nice.")])),
    (
        "a category",
        Editor(&[("action", "edit"), ("title", "Category:Ships"), ("text", "All ships.")]),
    ),
    (
        "a link to a redirect",
        Editor(&[("action", "edit"), ("title", "Nowhere"), ("text", "As of [[Old]].")]),
    ),
    (
        "another redirect",
        Editor(&[("action", "edit"), ("title", "Old"), ("text", "#REDIRECT [[Ferry]]")]),
    ),
    (
        "an article becomes a redirect",
        Editor(&[("action", "edit"), ("title", "Lighthouse"), ("text", "#REDIRECT [[Gull]]")]),
    ),
    ("spam", Visitor(&[("action", "edit"), ("title", "Ferry"), ("text", "Nonsense.")])),
    ("a rollback", Rollback("Ferry")),
];

const PAGES: [(&str, Change); 11] = [
    ("all jobs", Command("runJobs.php", &[], "")),
    (
        "a protected page",
        Editor(&[("action", "protect"), ("title", "Ferry"), ("protections", "edit=sysop")]),
    ),
    (
        "a moved page",
        Editor(&[("action", "move"), ("from", "Gull"), ("to", "Seagull"), ("movetalk", "1")]),
    ),
    ("a deleted page", Editor(&[("action", "delete"), ("title", "Missing")])),
    ("a restored page", Editor(&[("action", "undelete"), ("title", "Missing")])),
    ("a file", Upload(PICTURES[0])),
    ("a new version of a file", Upload(PICTURES[1])),
    ("a deleted file", Editor(&[("action", "delete"), ("title", "File:Gull.png")])),
    ("a purge", Editor(&[("action", "purge"), ("titles", "Ferry")])),
    ("a hidden author", HideRevision("Ferry")),
    ("a page deleted by a command", Command("deleteBatch.php", &[], "Nowhere\n")),
];

const SITE: [(&str, Change); 11] = [
    (
        "a site notice",
        Editor(&[
            ("action", "edit"),
            ("title", "MediaWiki:Sitenotice"),
            ("text", "The wiki moves."),
        ]),
    ),
    (
        "a sidebar",
        Editor(&[
            ("action", "edit"),
            ("title", "MediaWiki:Sidebar"),
            ("text", "* navigation\n** Ferry|The ferry"),
        ]),
    ),
    (
        "a text of missing pages",
        Editor(&[
            ("action", "edit"),
            ("title", "MediaWiki:Recentchangestext"),
            ("text", "What is new."),
        ]),
    ),
    (
        "the name of the main page",
        Editor(&[("action", "edit"), ("title", "MediaWiki:Mainpage"), ("text", "Ferry")]),
    ),
    (
        "styles",
        Editor(&[
            ("action", "edit"),
            ("title", "MediaWiki:Common.css"),
            ("text", "body { color: red }"),
        ]),
    ),
    (
        "other styles",
        Editor(&[
            ("action", "edit"),
            ("title", "MediaWiki:Common.css"),
            ("text", "body { color: blue }"),
        ]),
    ),
    ("deleted styles", Editor(&[("action", "delete"), ("title", "MediaWiki:Common.css")])),
    ("an account", Command("createAndPromote.php", &["Editor", "secret-of-editor-1"], "")),
    ("group rights", Rights("Editor", "sysop")),
    ("a block", Editor(&[("action", "block"), ("user", "Editor"), ("expiry", "infinite")])),
    ("the last jobs", Command("runJobs.php", &[], "")),
];
