//! Whether the rules of a site leave a request to its page, so that the request can be a plain hit: no rule refuses or
//! redirects any client that sends it, or all that a client needs is a password, and it has one that is remembered.
//!
//! The result is kept beside the page. A site without such rules compares nothing. A page behind a password is sent as
//! `private` (`exchange::write_private_lines`), and a password that is not remembered is checked by `exchange`.

use super::find::Key;
use super::read::{GivenPassword, PlainRequest};
use delivery::site::Site;
use http_cache::Method;
use rule_conditions::RequestView;
use site_rules::PageAccess;
use std::time::Instant;
use stored_pages::page::SharedPage;

impl PlainRequest<'_> {
    /// Whether no trial is on, and the site's rules leave the request to the page: that of any client if it has no
    /// `Authorization`, else the request of a client with a remembered password, which the page needs.
    #[inline]
    pub(super) fn is_admitted(
        &self,
        site: &Site,
        key: &Key,
        page: (&SharedPage, bool),
        instant: Instant,
    ) -> bool {
        if site.config.trial.is_some() {
            return false;
        }
        // Without such rules, no request has a password either.
        if !site.config.rules.may_answer() {
            return true;
        }
        match &self.password {
            None => self.is_free(site, key, page),
            Some(password) => self.has_password(site, key, page, (password, instant)),
        }
    }

    /// Whether the page needs a password, and the request has one that is remembered. The rule is noted as for `is_free`.
    #[inline(never)]
    fn has_password(
        &self,
        site: &Site,
        key: &Key,
        (page, is_kept): (&SharedPage, bool),
        (given, instant): (&GivenPassword<'_>, Instant),
    ) -> bool {
        let noted = is_kept.then(|| page.payload().password_under(site.reading())).flatten();
        let access = match noted {
            Some(rule) => Some(PageAccess::Password(rule)),
            None => self.find_access(site, key, is_kept.then_some(page)),
        };
        let Some(PageAccess::Password(rule)) = access else { return false };
        exchange::is_remembered((given.default_site, site), rule, given.value, instant)
    }

    /// Whether the site's rules neither refuse nor redirect any client that sends the request.
    /// `is_kept`: the result for this host and target is kept beside the page, so that the rules are compared once.
    ///
    /// Only *free*, or the rule of the password, is kept, with the number of the configuration (`SiteState::reading`), which
    /// no other one has. It is used for the same page under the same number, and then all that the rules read here is the
    /// same:
    ///
    /// - host, path and query: the page is stored under exactly these bytes, and the target is in its normal form
    ///   (`is_plain_for`). Another spelling, host or query is another page, or is left to `exchange`. The scheme is in the
    ///   key, too, and no rule reads it.
    /// - method: it is kept only if it holds for GET and HEAD.
    /// - client: a URL about which a rule has a condition on the client, or a limit, is neither free nor behind one password.
    /// - rules and redirect files: whatever reads them again makes another configuration, with another number. So does
    ///   another process, whose pages begin with none.
    ///
    /// A reload during a hit: the hit goes on with the old configuration, as before, and may write the old number after
    /// the new one. Then the next hit compares the rules again. No order of the two leaves the new number without a
    /// comparison with the new rules, because the number and the rules come from one immutable `SiteState`.
    #[inline]
    fn is_free(&self, site: &Site, key: &Key, (page, is_kept): (&SharedPage, bool)) -> bool {
        let is_known = is_kept && page.payload().is_free_under(site.reading());
        is_known
            || self.find_access(site, key, is_kept.then_some(page)) == Some(PageAccess::Everybody)
    }

    /// Compares the request with the rules. If the same clients get the page by GET and HEAD, that is noted in `page`.
    #[inline(never)]
    fn find_access(&self, site: &Site, key: &Key, page: Option<&SharedPage>) -> Option<PageAccess> {
        let host = key.host()?;
        let access_by = |method| {
            let view = RequestView::of_url(method, self.scheme, host, self.target);
            site.config.rules.page_access(view)
        };
        let (own, other) = match self.kind {
            Method::Head => (&http::Method::HEAD, &http::Method::GET),
            _ => (&http::Method::GET, &http::Method::HEAD),
        };
        let access = access_by(own)?;
        if let Some(page) = page.filter(|_| access_by(other) == Some(access)) {
            match access {
                PageAccess::Everybody => page.payload().set_free_under(site.reading()),
                PageAccess::Password(rule) => {
                    page.payload().set_password_under(site.reading(), rule);
                }
            }
        }
        Some(access)
    }
}
