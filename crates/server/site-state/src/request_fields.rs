//! The fields of a request as the cache reads them: which of them a client may set, and which go to the origin.
//!
//! The rules, the cache key and the choice of a variant see a request only through [`AsSent`], so that no
//! field can choose a page without reaching the origin, or reach it without being part of the choice.
//! Sources: RFC 9110 section 7.6.1 (fields of a connection); RFC 3875 section 4.1.18 (names as variables).

use crate::client::Visitor;
use config::steering_fields::is_from_clients;
use config::target::Target;
use http::{HeaderMap, Method};
use http_cache::{Fields, RequestFacts, fields};
use site_rules::RequestView;

/// Fields by which applications take one method for another. A GET that is rendered as something else
/// would be stored as the page; other methods go on as they came.
pub const METHOD_OVERRIDES: [&str; 3] =
    ["x-http-method-override", "x-http-method", "x-method-override"];

/// A request's header lines without those that do not go to the origin: what rules see, and what selects
/// a variant.
pub struct AsSent<F>(pub F);

impl<F: Fields> Fields for AsSent<F> {
    fn values<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&'a [u8])) {
        if !is_from_clients(name) {
            return;
        }
        // Most are not there, so that nobody need know whether they belong to the connection.
        let mut belongs = None;
        self.0.values(name, &mut |value| {
            if !*belongs.get_or_insert_with(|| fields::is_listed(&self.0, name)) {
                visit(value);
            }
        });
    }
}

/// The same of a request whose `Connection` lists no field.
pub struct AllAsSent<F>(pub F);

impl<F: Fields> Fields for AllAsSent<F> {
    fn values<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&'a [u8])) {
        if is_from_clients(name) {
            self.0.values(name, visit);
        }
    }
}

/// What the cache reads of a request.
pub fn read_facts<'a>(method: &Method, headers: &'a HeaderMap) -> RequestFacts<'a> {
    let lines = headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    RequestFacts::read(method, lines)
}

/// A request as the rules see it.
pub fn view_of<'a>(
    target: &'a Target,
    method: &'a Method,
    fields: &'a AsSent<&'a HeaderMap>,
    visitor: &Visitor,
) -> RequestView<'a> {
    RequestView {
        method,
        scheme: target.scheme,
        host: &target.host,
        path_and_query: target.page(),
        fields,
        peer: visitor.believed,
    }
}
