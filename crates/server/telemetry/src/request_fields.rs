//! The request fields that the cache uses: those that clients may set, and those that are forwarded
//! to the origin.
//!
//! The rules, the cache key and the variant selection access a request only through [`AsSent`]. So
//! a field that selects a page is always forwarded, and every forwarded field can be part of the
//! selection. Sources: RFC 9110 section 7.6.1 (hop-by-hop fields); RFC 3875 section 4.1.18 (names
//! as variables).

use crate::client::Client;
use http::{HeaderMap, Method};
use http_cache::{Fields, RequestFacts, fields};
use request_values::steering_fields::is_from_clients;
use request_values::target::TargetUri;
use rule_conditions::RequestView;

/// Fields by which applications replace the request method. The response to a GET with such a field
/// would be stored as the page. Other methods are forwarded unchanged.
pub const METHOD_OVERRIDES: [&str; 3] =
    ["x-http-method-override", "x-http-method", "x-method-override"];

/// A request's header lines without those that are not forwarded to the origin. Rules and variant
/// selection use them.
pub struct AsSent<F>(pub F);

impl<F: Fields> Fields for AsSent<F> {
    fn values<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&'a [u8])) {
        if !is_from_clients(name) {
            return;
        }
        // Most names are absent, so the `Connection` field is usually not parsed.
        let mut belongs = None;
        self.0.values(name, &mut |value| {
            if !*belongs.get_or_insert_with(|| fields::is_listed(&self.0, name)) {
                visit(value);
            }
        });
    }
}

/// The same for a request whose `Connection` field lists no other field.
pub struct AllAsSent<F>(pub F);

impl<F: Fields> Fields for AllAsSent<F> {
    fn values<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&'a [u8])) {
        if is_from_clients(name) {
            self.0.values(name, visit);
        }
    }
}

/// Parses the parts of a request that the cache needs.
pub fn read_facts<'a>(method: &Method, headers: &'a HeaderMap) -> RequestFacts<'a> {
    let lines = headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    RequestFacts::read(method, lines)
}

/// The view of a request that the rules use.
pub fn view_of<'a>(
    target: &'a TargetUri,
    method: &'a Method,
    fields: &'a AsSent<&'a HeaderMap>,
    client: &'a Client,
) -> RequestView<'a> {
    RequestView {
        method,
        scheme: target.scheme,
        host: &target.host,
        path_and_query: target.page(),
        fields,
        client,
    }
}
