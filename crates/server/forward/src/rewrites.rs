//! Rewrites of rules: the route of a request with the path and query that a rule gives it.
//!
//! Invariants: the target of the request does not change, so key, purges and `REQUEST_URI` are those of the client. The
//! new path is routed as any other, so nothing hidden is served and no refused script runs; it is not rewritten again.
//!
//! Not here: which rule applies (`site_rules`).

use delivery::site::Site;
use http::{HeaderMap, Method};
use origin::routes::{Route, names_file, route_in};
use request_values::target::TargetUri;
use rule_conditions::RequestView;
use site_rules::{Rewrite, RewriteFor};
use telemetry::client::Client;
use telemetry::request_fields::{AsSent, view_of};

/// A request whose route is to be found.
#[derive(Clone, Copy)]
pub struct RoutedRequest<'a> {
    /// The target of the request.
    pub target: &'a TargetUri,
    /// The method of the request.
    pub method: &'a Method,
    /// Its fields and its client, if the response is not stored. Only then a rule may depend on them.
    pub client: Option<(&'a HeaderMap, &'a Client)>,
}

impl<'a> RoutedRequest<'a> {
    /// A request whose response may be stored.
    pub fn of_page(target: &'a TargetUri, method: &'a Method) -> RoutedRequest<'a> {
        RoutedRequest { target, method, client: None }
    }
}

/// The rewrite of a request, if a rule has one.
pub fn rewrite(site: &Site, asked: &RoutedRequest<'_>) -> Option<Rewrite> {
    let (rules, target) = (&site.config.rules, asked.target);
    if !rules.has_rewrites() {
        return None;
    }
    let root = site.root()?;
    let path = target.written.as_deref().unwrap_or(target.path());
    let is_file = || names_file(root, path);
    match asked.client {
        None => rules.rewrite(&view_of_page(asked), RewriteFor::Page, is_file),
        Some((headers, client)) => {
            let fields = AsSent(headers);
            let view = view_of(target, asked.method, &fields, client);
            let view = RequestView { path_and_query: &target.path_and_query, ..view };
            rules.rewrite(&view, RewriteFor::Client, is_file)
        }
    }
}

/// The request without what is its client's.
pub(crate) fn view_of_page<'a>(asked: &RoutedRequest<'a>) -> RequestView<'a> {
    let target = asked.target;
    RequestView::of_url(asked.method, target.scheme, &target.host, &target.path_and_query)
}

/// The route of a rewritten request.
pub(crate) fn route(site: &Site, rewrite: &Rewrite) -> Route {
    let Some(root) = site.root() else { return Route::NotFound };
    let found = match route_in(root, &rewrite.path) {
        // The client does not see this path, so it is not redirected there.
        Route::AddSlash(path) => route_in(root, &path),
        found => found,
    };
    match found {
        Route::Script(mut script) => {
            script.query = Some(rewrite.query.clone());
            Route::Script(script)
        }
        found => found,
    }
}
