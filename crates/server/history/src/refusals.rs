//! Advice on the reasons that the application itself gives in `X-Pagewell-Refusal`.
//!
//! The codes are those of the PHP library and the plugins (`php/core/src/Refusal.php`,
//! `php/mediawiki/Pagewell/src/Refusal.php`). A test compares the tables. An application may send
//! others; they are shown with the advice to ask the application. Reading the field is in
//! `http_cache::refusal_code`.

/// The codes that responses have, with the advice for each.
const ADVICE: &[(&str, &str)] = &[
    (
        "sent",
        "Declare tags and TTL before the first output: then the header section is not sent yet.",
    ),
    (
        "unobserved",
        "See PHP's log: a function that collects the data of the page failed, perhaps because of another plugin.",
    ),
    (
        "not-in-front",
        "Have the server between Pagewell and PHP pass on the request field Via, which Pagewell adds.",
    ),
    (
        "reads-hidden",
        "Use the plugin or the library for tags, or turn the object cache off: no statement shows what comes from it.",
    ),
    ("sent-early", "Do not flush output before the page is complete."),
    (
        "fragments",
        "Leave the ESI fragments out: nginx does not insert them. Or put Pagewell in front of PHP.",
    ),
    (
        "changes-not-received",
        "Set PAGEWELL_CHANGES=control, so that changes do not need to pass through Pagewell.",
    ),
    ("nothing-declared", "Call uses(…) for the data that the page shows, or freshFor(…)."),
    ("method", "Nothing: only pages that are requested with GET are cached."),
    (
        "failed",
        "Fix the page: it failed. See the application's log, and origin-stderr in Pagewell's.",
    ),
    ("signed-in", "Nothing: the page was rendered for a visitor who is signed in."),
    (
        "session",
        "Start sessions only where they are needed. Visitors without a session can still get this page from the cache.",
    ),
    (
        "authorization",
        "Nothing, if the page is for one client. Mark it as shared only if it is the same for everybody.",
    ),
    (
        "visitors-cookie",
        "Nothing, if the page depends on the visitor's cookie. If no page depends on it, name it in cookies.ignore; then PHP does not receive it.",
    ),
    ("request-unknown", "Pass the request to the library: the worker declared no Credentials."),
    (
        "not-cached",
        "Nothing, if it is intended: the application called notCached(), or set DONOTCACHEPAGE.",
    ),
    (
        "set-cookie",
        "Find the code that sets the cookie. Set cookies on separate pages, or start sessions only when needed.",
    ),
    (
        "cache-control",
        "Nothing, if the page is for one visitor. Otherwise find the code that sends private or no-store.",
    ),
    ("zero-lifetime", "Nothing, if it is intended: the application gave the page a TTL of 0."),
    ("too-many-tags", "Use fewer tags: name a whole kind. A list that was cut would miss changes."),
    ("status", "Nothing: pages with this status are not cached."),
    ("preview", "Nothing: drafts and previews are not cached."),
    ("unapproved-comment", "Nothing: the page shows a comment only to its author."),
    ("password", "Nothing: the post has a password."),
    ("visitors-nonce", "Nothing, if the form is needed: the page contains a nonce of one visitor."),
    (
        "by-device",
        "Set device_classes in a rule and PAGEWELL_DEVICES in WordPress, to cache one copy for each kind of device.",
    ),
    (
        "rest-route",
        "Declare the route with the filter pagewell_rest_route, if its response is the same for everybody.",
    ),
    (
        "unknown-dependencies",
        "Nothing: the extension does not know on which data this page, action or module depends.",
    ),
    ("visitors-messages", "Nothing: the page tells one visitor about messages."),
    ("blocked", "Nothing: the address of this visitor is blocked."),
    ("wrong-setting", "Correct the setting of the extension: PHP's log names it."),
    ("private-wiki", "Nothing: visitors who are not signed in may not read the wiki."),
    ("outdated-value", "Nothing: the page is stored a moment after the change."),
    ("replicas", "Use one database server for pages: a replica may not have a change yet."),
];

/// The advice on a code that is not in the table.
const OTHER: &str = "See the manual of the application or its plugin for this reason.";

/// Returns the advice on a code.
pub fn remedy(code: &str) -> &'static str {
    ADVICE.iter().find(|(known, _)| *known == code).map_or(OTHER, |(_, advice)| advice)
}

/// The codes that the application gives because of the request of one visitor. It checks them first, so
/// a response with another code of the table would not be offered to other visitors either.
const OF_VISITOR: [&str; 5] =
    ["visitors-cookie", "session", "signed-in", "authorization", "request-unknown"];

/// Whether a response may have been refused because of its visitor's request.
pub fn may_be_of_visitor(code: &str) -> bool {
    OF_VISITOR.contains(&code) || ADVICE.iter().all(|(known, _)| *known != code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes of pages for nginx's memcached port, which have no response field that Pagewell reads.
    const OF_MEMCACHED: [&str; 6] =
        ["content-type", "varies", "key", "tags", "no-lease", "refused"];

    /// Returns the codes of a PHP enum: `case Name = 'code';`.
    fn codes(php: &'static str) -> Vec<&'static str> {
        let line = |line: &'static str| {
            let value = line.trim().strip_prefix("case ")?.split_once(" = '")?.1;
            value.strip_suffix("';")
        };
        php.lines().filter_map(line).collect()
    }

    #[test]
    fn every_code_of_the_library_and_the_plugins_has_advice() {
        let library = codes(include_str!("../../../../php/core/src/Refusal.php"));
        let mediawiki = codes(include_str!("../../../../php/mediawiki/Pagewell/src/Refusal.php"));
        assert!(library.len() > 20 && mediawiki.len() > 8, "{library:?} {mediawiki:?}");
        for code in library.iter().chain(&mediawiki) {
            assert!(remedy(code) != OTHER || OF_MEMCACHED.contains(code), "{code}");
        }
    }

    #[test]
    fn only_unknown_codes_and_those_of_visitors_may_be_due_to_a_visitor() {
        for code in OF_VISITOR {
            assert!(may_be_of_visitor(code) && remedy(code) != OTHER, "{code}");
        }
        assert!(may_be_of_visitor("of-another-plugin"));
        assert!(!may_be_of_visitor("set-cookie") && !may_be_of_visitor("too-many-tags"));
    }

    #[test]
    fn the_table_is_well_formed() {
        for (at, (code, advice)) in ADVICE.iter().enumerate() {
            assert!(advice.ends_with('.'), "{code}");
            assert!(ADVICE[..at].iter().all(|(other, _)| other != code), "{code} twice");
        }
        assert_eq!(remedy("of-another-plugin"), OTHER);
    }

    /// `private` may be all that keeps a page from strangers, so no advice is to remove it.
    #[test]
    fn no_advice_is_to_remove_private() {
        assert!(ADVICE.iter().all(|(_, advice)| !advice.contains("emove private")));
    }
}
