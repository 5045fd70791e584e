//! Advice on each reason, in a sentence: one table for `pagewell explain`, the control interface
//! and everything that shows their output. The reasons of RFC 9111 have their own advice
//! (`NotStored::advice`); the others are here. A test compares the table with the manual
//! (`docs/operating/errors.md`): every reason there for a bypass, or for not storing a page, has an
//! entry here.

use http_cache::NotStored;

/// The reasons with their advice.
const REMEDIES: &[(&str, &str)] = &[
    // Reasons for an origin request.
    (
        "uri-miss",
        "Request the page, and explain it again: the response shows whether it can be stored.",
    ),
    (
        "vary-miss",
        "Name only fields with few different values in Vary; Accept-Encoding needs no Vary here.",
    ),
    ("stale", "Send a longer TTL, with tags that purge the page when its data changes."),
    ("request", "Nothing, or set cache.request_directives to ignore."),
    ("partial", "Nothing: the rest of the page is fetched."),
    ("bypass", "Request the page with GET, without content and without Authorization."),
    // Reasons for a bypass.
    (
        "session-cookie",
        "Start sessions only where they are needed. Or share pages that are the same for everybody with a rule (shared_with_sessions), or configure private copies (private.cookies).",
    ),
    ("owner-cookie-twice", "Set the cookie for one path and domain only."),
    ("owner-cookies-too-long", "Name fewer cookies in private.cookies."),
    ("owner-authorization", "Use either the session's cookie or Authorization."),
    (
        "unknown-cookie",
        "Name the cookie in cookies.ignore if pages do not depend on it, or in cookies.session if they do. Or mark the page as the same for all (public, s-maxage or tags).",
    ),
    (
        "credential-field",
        "Nothing, if the response depends on the field. Otherwise name the field in keys.fields, to store one copy for each value.",
    ),
    (
        "partial-page",
        "Name the fields on which the response depends in keys.fields, to store one copy for each value.",
    ),
    (
        "personal-query",
        "Nothing, if the parameter is personal (a mail address, a token, the key of an order). Otherwise name it in keys.keep.",
    ),
    ("field-too-long", "Send at most 256 bytes in a field of keys.fields."),
    ("after-write", "Nothing: it ends after the time in the rule's after_write."),
    ("rule", "Nothing, if the rule is intended; otherwise change the rule."),
    ("handed-over", "Nothing: the next connection reaches the new process."),
    ("stopping", "Nothing: the next connection reaches another process."),
    (
        "changes-late",
        "See database-broken and cluster-pending in the log. If the server is only slow, raise database.barrier or cluster.barrier.",
    ),
    // Reasons for not storing a page, in addition to RFC 9111.
    ("owner-coded", "Turn compression off in the application: Pagewell compresses pages."),
    (
        "redirect-to-itself",
        "Redirect to another address. URL normalisation in the configuration determines which addresses are the same.",
    ),
    ("streamed", "Nothing, if it is a stream; otherwise remove X-Accel-Buffering: no."),
    (
        "field-not-in-key",
        "Name the request field in keys.harmless_fields if no page depends on it. Otherwise have the page name it in Vary, or name it in keys.fields.",
    ),
    (
        "cookie-not-in-key",
        "Name the cookie in cookies.ignore if pages do not depend on it, in vary_cookies of a rule if they do, or in cookies.session if it is the visitor's login.",
    ),
    ("vary-of-one-client", "Vary by a cookie that a rule names (vary_cookies), or send private."),
    (
        "sendfile",
        "Send the file from the script. If a web server in front of Pagewell sends it, name the field in dialects.pass_on.",
    ),
    ("php-fatal-error", "Fix the page: PHP's error is in the log (origin-stderr)."),
    ("vary-cookie-set", "Nothing: the next request has the cookie."),
    (
        "session-for-all",
        "Use another cookie name, or set the cookie with Set-Cookie on a separate page.",
    ),
    ("tag-too-long", "Use shorter tags: at most 1,024 bytes."),
    ("too-many-tags", "Use fewer tags: name a whole kind."),
    ("owner-unclear", "Please report it: this is a bug in Pagewell."),
    (
        "changed-since",
        "Nothing, unless it is frequent: the page's data changed during the render. Then find the source of the changes (pagewell explain --tag).",
    ),
    ("superseded", "Nothing: a newer response replaced it."),
    (
        "lease-too-old",
        "Nothing, unless it is frequent: then make the page faster, or send fewer invalidations.",
    ),
    (
        "unsettled",
        "Nothing: the page is stored a moment later. If it stays so, a database is not followed: see database-broken in the log.",
    ),
    (
        "reads-unseen",
        "See reads-refused in the log: the statements of the render did not all get here (automatic dependencies).",
    ),
    (
        "reads-hidden",
        "Turn off the cache that the log names (reads-refused), such as APCu or object-cache.php: no statement shows what the page takes from it. Or send tags for the page.",
    ),
    (
        "personal-field",
        "Remove the response field that is one client's (a nonce, a cart, a token, a session). Or send caching headers, if the page is the same for everybody.",
    ),
    (
        "content-type",
        "Send caching headers, or name the media type in automatic.content_types if such responses are the same for everybody.",
    ),
    (
        "as-sent",
        "Nothing: the page could not be stored before, so that it was rendered with the visitor's own address and browser. The next one can be stored.",
    ),
    (
        "in-progress",
        "Nothing: the response was sent while it was made, and whether it was stored is known only at its end.",
    ),
    (
        "reads-unknown",
        "See reads-refused in the log for the statement. Send a lifetime and tags for the page, or change the statement.",
    ),
    (
        "reads-changed",
        "Nothing, unless it is frequent: a row that the page shows changed during the render.",
    ),
    ("reads-too-many", "Raise memory, or send a lifetime and tags for the page."),
    // Reasons for which the origin gave no response.
    ("origin-refused", "Is the origin running, and is its address right? See the log."),
    (
        "hung-up",
        "See origin-stderr and php-fpm-log in the log: a child crashed, or the origin was restarted.",
    ),
    ("timed-out", "Find the cause of the delay, or raise limits.origin_timeout."),
    (
        "overloaded",
        "Use more children (php.children) if there is memory. Otherwise find pages that are slow or not stored (pagewell misses).",
    ),
    ("invalid-response", "See origin-invalid in the log."),
    (
        "fragment-failed",
        "See fragment-failed in the log; onerror=\"continue\" leaves a fragment out.",
    ),
    ("fragment-error", "Fix the fragment: only successful responses are stored."),
    ("page-too-large", "Raise limits.page_bytes, or shorten the template."),
    // Reasons for which Pagewell answers itself.
    ("host-unknown", "Name the host in site.host or site.aliases."),
    ("to-https", "Request the https address."),
    ("not-found", "Is the file there? Is there a front controller (index.php)?"),
    ("hidden-name", "A file with this name is never served: rename it, or change site.hidden."),
    (
        "source-hidden",
        "Source code is never served. Name the extensions of scripts to run in site.scripts.",
    ),
    (
        "link-to-hidden",
        "A symbolic link leads to a name that is never served: link to another name, or change site.hidden.",
    ),
    (
        "link-outside-root",
        "A symbolic link leads outside the document root: allow the directory with site.allow_symlinks.",
    ),
    ("file-failed", "Check the file's permissions and the disk: see file-failed in the log."),
    ("path-malformed", "Write the path without a wrong escape or steps above the root."),
    ("only-if-cached", "Remove only-if-cached."),
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
        "Response not cached: reasons",
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
