//! The site's own responses: cookies on every page, missing validators, no compression, no answer.
//!
//! Only a property of all requested pages is a fault of the site. A single page with a cookie may be intended.

use crate::{Answer, Facts, Finding, Weight};

/// Content below this length in bytes is not worth compressing.
const SMALL: u64 = 1500;

/// Checks for paths that are answered with 404 because a symbolic link leads outside the root. Only clients
/// notice such a fault.
pub(super) fn links_outside(facts: &Facts) -> Option<Finding> {
    let outside = facts.links_outside.as_ref()?;
    let (link, target) = &outside.example;
    Some(Finding {
        name: "link-outside-root",
        weight: Weight::Fails,
        what: "Symbolic links lead outside the document root: their paths are answered with 404."
            .into(),
        evidence: format!("{} links, such as {link} -> {target}.", outside.count),
        command: format!("{}    # in the configuration, then: pagewell reload", outside.allowing),
        risk: "Visitors can read all files in these directories, except names that are never served.",
    })
}

/// The findings from all responses together.
pub(super) fn answers(facts: &Facts) -> Vec<Finding> {
    let pages: Vec<&Answer> = facts.answers.iter().filter(|one| one.status == Some(200)).collect();
    let failing = facts.answers.iter().filter(|one| one.status.is_none_or(|code| code >= 500));
    let mut found: Vec<Finding> = failing.map(no_answer).collect();
    found.extend(facts.answers.iter().filter_map(not_judged));
    found.extend(cookies(&pages));
    found.extend(forbidden(&pages));
    found.extend(undeclared(&pages));
    found.extend(validators(&pages));
    found.extend(compression(&pages));
    found
}

fn no_answer(answer: &Answer) -> Finding {
    let said = answer.status.map_or("nothing".to_owned(), |status| status.to_string());
    Finding {
        name: "no-answer",
        weight: Weight::Fails,
        what: "The site does not answer.".into(),
        evidence: format!("{} answered {said}.", answer.url),
        command: format!("curl -sv '{}' -o /dev/null", answer.url),
        risk: "None: the command only reads.",
    }
}

/// A response that is neither a page nor an error says nothing about the pages of the site.
fn not_judged(answer: &Answer) -> Option<Finding> {
    let status = answer.status.filter(|code| *code != 200 && *code < 500)?;
    let command = match (&answer.location, status) {
        (Some(location), _) => format!("pagewell doctor --url '{location}'"),
        (None, 421) => {
            "pagewell doctor --url http://…/    # with a host that the site answers for".into()
        }
        (None, _) => "pagewell doctor --url …    # a page that all visitors may see".into(),
    };
    let leads = answer.location.as_ref().map(|to| format!(" and leads to {to}"));
    Some(Finding {
        name: "site-not-judged",
        weight: Weight::Note,
        what: "The pages of the site could not be examined.".into(),
        evidence: format!("{} answered {status}{}.", answer.url, leads.unwrap_or_default()),
        command,
        risk: "None: the command only reads.",
    })
}

/// Whether Pagewell caches the page nevertheless, for example because of a rule.
fn is_kept(page: &Answer) -> bool {
    let words = page.cache_status.as_deref().unwrap_or_default().split([';', ',']).map(str::trim);
    words.into_iter().any(|word| matches!(word, "hit" | "stored"))
}

fn cookies(pages: &[&Answer]) -> Option<Finding> {
    let sets = |page: &&&Answer| !page.cookies.is_empty() && !is_kept(page);
    let first = pages.iter().find(sets)?;
    pages.iter().all(|page| sets(&page)).then(|| Finding {
        name: "cookie-on-every-page",
        weight: Weight::Slow,
        what: "Every page sets a cookie, so no page is cached: every request reaches PHP.".into(),
        evidence: format!("{} sets {} for a visitor without cookies.", first.url, first.cookies.join(", ")),
        command: "start the session only where it is needed (sign-in, cart); or, if the cookie is not needed: a [[rule]] with path = \"/news/*\" (pages that are the same for all visitors) and ignore = \"set-cookie\"".into(),
        risk: "With the rule, cached pages never set that cookie: sign-in forms must be on pages without the rule.",
    })
}

fn forbidden(pages: &[&Answer]) -> Option<Finding> {
    let says = |page: &&&Answer| {
        let forbids = page.cache_control.as_deref().is_some_and(|text| {
            let text = text.to_ascii_lowercase();
            text.contains("no-store") || text.contains("private")
        });
        forbids && !is_kept(page)
    };
    let first = pages.iter().find(says)?;
    pages.iter().all(|page| says(&page)).then(|| Finding {
        name: "storing-forbidden",
        weight: Weight::Slow,
        what: "Every page forbids caching: every request reaches PHP.".into(),
        evidence: format!(
            "{} says Cache-Control: {}.",
            first.url,
            first.cache_control.as_deref().unwrap_or_default()
        ),
        command: "session_cache_limiter('') in PHP, if a session started it; or Pagewell-Cache-Control on pages that may be cached".into(),
        risk: "Personal pages must not be cached: decide for each page.",
    })
}

fn undeclared(pages: &[&Answer]) -> Option<Finding> {
    let says = |page: &&Answer| {
        page.cache_status.as_deref().is_some_and(|text| text.contains("detail=no-lifetime"))
    };
    let first = pages.first()?;
    pages.iter().all(says).then(|| Finding {
        name: "nothing-declared",
        weight: Weight::Slow,
        what: "No page has a TTL, so no page is cached: every request reaches PHP.".into(),
        evidence: format!(
            "{} says Cache-Status: {}.",
            first.url,
            first.cache_status.as_deref().unwrap_or_default()
        ),
        command: "declare in the page what it depends on (tags), or send Cache-Control; for a start: [cache] default_lifetime = \"1s\"".into(),
        risk: "With a default lifetime, a personal page without a session must send private.",
    })
}

fn validators(pages: &[&Answer]) -> Option<Finding> {
    // Cached pages have a validator, except those assembled from ESI fragments for each client.
    let first = pages.iter().find(|page| !page.validator && !is_kept(page))?;
    Some(Finding {
        name: "no-validator",
        weight: Weight::Note,
        what: "Clients that request a page again get all of it instead of a 304.".into(),
        evidence: format!("{} has neither ETag nor Last-Modified.", first.url),
        command: "send ETag or Last-Modified from the application, and answer If-None-Match; or let Pagewell cache the page: it adds an ETag".into(),
        risk: "None.",
    })
}

fn compression(pages: &[&Answer]) -> Option<Finding> {
    let first = pages.iter().find(|page| !page.compressed && page.bytes > SMALL)?;
    Some(Finding {
        name: "not-compressed",
        weight: Weight::Note,
        what: "Pages are sent uncompressed to clients that accept gzip.".into(),
        evidence: format!("{}: {} bytes.", first.url, first.bytes),
        command: "none if Pagewell caches the page: it compresses the page once, in the background; run doctor again in a second".into(),
        risk: "None.",
    })
}
