//! The route of a request on a site with files: after the rewrites of rules, and without what is withheld or refused.
//!
//! Not here: what a rewrite is (`rewrites`), which script runs (`scripts`), and what answers a route (`forward`).

use crate::rewrites::{self, RoutedRequest};
use crate::{scripts, sendfile};
use delivery::site::Site;
use origin::routes::{Route, Withheld, route_in};
use request_values::target::TargetUri;
use site_rules::{Rewrite, ScriptRefusal};

/// Returns the route of the target. Scripts get the normalised path, because their responses are
/// stored under it. Files, also hidden ones, are found only by the path as it was sent.
/// Normalisation may have removed the slash of a directory; redirecting to add it would never end.
pub fn route_of(site: &Site, asked: &RoutedRequest<'_>) -> Route {
    allowed_route(site, asked).0
}

/// The route of the target, and whether it is rewritten.
pub(crate) fn allowed_route(site: &Site, asked: &RoutedRequest<'_>) -> (Route, bool) {
    let (found, rewrite) = found_route(site, asked);
    let is_rewritten = rewrite.is_some();
    let route = match (found, rewrite) {
        (Route::Static(path), _) if sendfile::is_internal(site, &path) => {
            Route::Hidden(Withheld::Name)
        }
        (Route::Script(script), _) if sendfile::is_internal(site, &script.filename) => {
            Route::Hidden(Withheld::Name)
        }
        (Route::Script(script), rewrite)
            if scripts::refusal(site, asked.target, rewrite.as_ref(), &script).is_some() =>
        {
            Route::Hidden(Withheld::Script)
        }
        (route, _) => route,
    };
    (route, is_rewritten)
}

/// Why the script to which the target leads does not run, if so.
pub fn script_refusal(site: &Site, asked: &RoutedRequest<'_>) -> Option<ScriptRefusal> {
    match found_route(site, asked) {
        (Route::Script(script), rewrite) => {
            scripts::refusal(site, asked.target, rewrite.as_ref(), &script)
        }
        _ => None,
    }
}

/// The route of a request, whichever scripts may run, and its rewrite.
fn found_route(site: &Site, asked: &RoutedRequest<'_>) -> (Route, Option<Rewrite>) {
    match rewrites::rewrite(site, asked) {
        Some(rewrite) => (rewrites::route(site, &rewrite), Some(rewrite)),
        None => (route_of_target(site, asked.target), None),
    }
}

/// The route of a target that is not rewritten.
fn route_of_target(site: &Site, target: &TargetUri) -> Route {
    let Some(root) = site.root() else { return Route::NotFound };
    let normal = route_in(root, target.path());
    match (&target.written, normal) {
        (None, normal) => normal,
        (Some(written), Route::AddSlash(_)) => route_in(root, written),
        (Some(written), normal) => match route_in(root, written) {
            there @ (Route::Static(_) | Route::Hidden(_)) => there,
            _ => normal,
        },
    }
}
