//! Advice on each reason, in a sentence: one table for `pagewell explain`, the control interface
//! and everything that shows their output. The reasons of RFC 9111 have their own advice
//! (`NotStored::advice`); the others are here. A test compares the table with the manual
//! (`docs/operating/errors.md`): every reason there for a bypass, or for not storing a page, has an
//! entry here.

use http_cache::NotStored;

/// The reasons with their advice.
const REMEDIES: &[(&str, &str)] = &[
    // Reasons for an origin request.
    ("uri-miss", "Nothing: the next visitor gets it from memory, if it is stored."),
    (
        "vary-miss",
        "Let Vary name only fields that few values are seen of; Accept-Encoding needs no Vary here.",
    ),
    ("stale", "A longer lifetime, with tags that drop it when it changes."),
    ("request", "Nothing, or set cache.request_directives to ignore."),
    ("partial", "Nothing: the rest of it is asked for."),
    ("bypass", "Ask for the page with GET, without content and without Authorization."),
    // Reasons for a bypass.
    (
        "session-cookie",
        "Start sessions only where they are needed; or let a rule share the pages that are the same for everybody (shared_with_sessions), or keep private copies.",
    ),
    ("owner-cookie-twice", "Set the cookie for one path and domain only."),
    ("owner-cookies-too-long", "Name fewer cookies in private.cookies."),
    ("owner-authorization", "Use either the session's cookie or Authorization."),
    (
        "unknown-cookie",
        "Name the cookie in cookies.ignore if pages do not depend on it, or in cookies.session if they do; or let the page say that it is the same for all (public, s-maxage or tags).",
    ),
    (
        "credential-field",
        "Nothing, if the response differs by the field; else name the field in keys.fields: then there is one copy for each value.",
    ),
    (
        "partial-page",
        "Name the fields by which the response differs in keys.fields, to have one copy for each of their values.",
    ),
    ("field-too-long", "Send 256 bytes at most in a field of keys.fields."),
    ("after-write", "Nothing: it passes in a moment; the rule's after_write says how long."),
    ("rule", "Nothing, if the rule is meant so; else change the rule."),
    ("handed-over", "Nothing: the next connection is the new process's."),
    ("stopping", "Nothing: the next connection is another process's."),
    (
        "changes-late",
        "See database-broken and cluster-pending in the log; raise database.barrier or cluster.barrier if the server is only slow.",
    ),
    // Reasons for not storing a page, in addition to RFC 9111.
    ("owner-coded", "Let Pagewell do the coding: switch compression off in the application."),
    (
        "redirect-to-itself",
        "Let the application redirect to another address; rules say what addresses are the same.",
    ),
    ("streamed", "Nothing, if it is a stream; else leave out X-Accel-Buffering: no."),
    (
        "field-not-in-key",
        "Let Vary name the request field by which the response differs, or name the field in keys.fields.",
    ),
    (
        "vary-of-one-client",
        "Let the application vary by a cookie that a rule names (vary_cookies), or send private.",
    ),
    (
        "sendfile",
        "Let the script send the file itself, or name the field in dialects.pass_on where a web server in front sends it.",
    ),
    ("php-fatal-error", "Mend the page: PHP's error is in the log (origin-stderr)."),
    ("vary-cookie-set", "Nothing: the next request brings the cookie."),
    (
        "session-for-all",
        "Give the cookie another name, or set it with Set-Cookie on a page of its own.",
    ),
    ("tag-too-long", "Use shorter tags: 1,024 bytes at most."),
    ("too-many-tags", "Use fewer tags: name a kind as a whole."),
    ("owner-unclear", "Please report it: this is a fault of Pagewell's."),
    (
        "changed-since",
        "Nothing, unless it is frequent: what it is made from changed while it was made. Then look for what changes it (pagewell explain --tag).",
    ),
    ("superseded", "Nothing: a newer one is stored."),
    (
        "lease-too-old",
        "Nothing, unless it is frequent: then make the page faster, or announce fewer changes.",
    ),
    (
        "unsettled",
        "Nothing: a moment later it is stored. If it stays so, a database is not followed: see database-broken in the log.",
    ),
    // Reasons for which the origin gave no response.
    ("origin-refused", "Is the origin running, and is its address right? See the log."),
    (
        "hung-up",
        "See origin-stderr and php-fpm-log in the log: a child has crashed, or the origin was restarted.",
    ),
    ("timed-out", "Find what the page waits for; or raise limits.origin_timeout."),
    (
        "overloaded",
        "More children (php.children) if there is memory; else see what is not stored, or slow (pagewell misses).",
    ),
    ("invalid-response", "See origin-invalid in the log."),
    (
        "fragment-failed",
        "See fragment-failed in the log; onerror=\"continue\" leaves a fragment out.",
    ),
    ("page-too-large", "Raise limits.page_bytes, or have fewer fragments in it."),
    // Reasons for which Pagewell answers itself.
    ("host-unknown", "Name the host in site.host or site.aliases."),
    ("to-https", "Ask for the https address."),
    ("not-found", "Is the file there? Is there a front controller (index.php)?"),
    ("hidden-name", "A file of this name is never served: rename it, or change site.hidden."),
    ("source-hidden", "Source is never shown; scripts that are to run are named by site.scripts."),
    (
        "link-to-hidden",
        "A symbolic link leads to a name that is never served: link to another name, or change site.hidden.",
    ),
    (
        "link-outside-root",
        "A symbolic link leads outside the document root: allow the directory by site.allow_symlinks.",
    ),
    ("file-failed", "Permissions, or the disk: see file-failed in the log."),
    ("path-malformed", "Write the path without a bad escape or steps above the root."),
    ("only-if-cached", "Leave out only-if-cached."),
];

/// Returns the advice on a reason; `None` if the text is no reason.
pub fn remedy(reason: &str) -> Option<&'static str> {
    let of_rfc = NotStored::ALL.iter().find(|one| one.as_str() == reason);
    let own = || REMEDIES.iter().find(|(name, _)| *name == reason).map(|(_, text)| *text);
    of_rfc.map(|one| one.advice()).or_else(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Returns the names in the first column of the tables below these headings of the manual.
    fn in_the_manual(headings: &[&str]) -> BTreeSet<String> {
        let text = include_str!("../../../../../docs/operating/errors.md");
        let sections =
            text.split("\n## ").filter(|one| headings.iter().any(|h| one.starts_with(h)));
        let rows =
            sections.flat_map(|section| section.lines().filter(|line| line.starts_with("| `")));
        rows.flat_map(|row| {
            let cell = row.split('|').nth(1).unwrap_or_default();
            cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
    }

    const HEADINGS: [&str; 4] = [
        "The request bypassed the cache",
        "The origin did not answer",
        "A page was answered, and not stored",
        "# Errors and reasons",
    ];

    #[test]
    fn every_reason_of_the_manual_has_a_remedy() {
        let names = in_the_manual(&HEADINGS);
        assert!(names.len() > 45, "{names:?}");
        // Skip the header cells of the tables.
        for name in names.iter().filter(|name| !matches!(name.as_str(), "fwd" | "detail")) {
            assert!(remedy(name).is_some_and(|text| text.ends_with(['.', '?', ')'])), "{name}");
        }
    }

    #[test]
    fn every_remedy_is_for_a_reason_of_the_manual() {
        let text = include_str!("../../../../../docs/operating/errors.md");
        for (at, (name, _)) in REMEDIES.iter().enumerate() {
            assert!(text.contains(&format!("`{name}`")), "{name}");
            assert!(REMEDIES[..at].iter().all(|(other, _)| other != name), "{name} twice");
            assert!(NotStored::ALL.iter().all(|one| one.as_str() != *name), "{name} twice");
        }
    }
}
