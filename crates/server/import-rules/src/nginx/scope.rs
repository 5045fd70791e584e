//! The directives of one `server` or `location`, sorted by what they intend.
//!
//! Not here: the translation of each kind, which has a module of its own.

use super::{Translation, known};
use crate::source::Directive;

/// The directives of one block.
#[derive(Debug, Default)]
pub(super) struct Scope<'a> {
    /// `allow` and `deny`, in their order.
    pub(super) networks: Vec<&'a Directive>,
    /// `auth_basic` and `auth_basic_user_file`.
    pub(super) auth: Vec<&'a Directive>,
    /// Whether `satisfy any` was written.
    pub(super) satisfy_any: Option<bool>,
    pub(super) limit: Option<&'a Directive>,
    /// `return`.
    pub(super) answer: Option<&'a Directive>,
    pub(super) internal: Option<&'a Directive>,
    pub(super) alias: Option<&'a Directive>,
    pub(super) root: Option<&'a Directive>,
    /// `fastcgi_pass`.
    pub(super) php: Option<&'a Directive>,
    pub(super) try_files: Option<&'a Directive>,
    pub(super) rewrites: Vec<&'a Directive>,
    pub(super) ifs: Vec<&'a Directive>,
    /// Response fields and lifetimes.
    pub(super) fields: Vec<&'a Directive>,
    pub(super) error_pages: Vec<&'a Directive>,
    pub(super) locations: Vec<&'a Directive>,
    pub(super) referers: Option<&'a Directive>,
}

/// Sorts the directives of a block, and translates those that concern the whole site.
pub(super) fn read_scope<'a>(
    translation: &mut Translation<'a>,
    all: &[&'a Directive],
    is_server: bool,
) -> Scope<'a> {
    let mut scope = Scope::default();
    for &one in all {
        match one.name.as_str() {
            "allow" | "deny" => scope.networks.push(one),
            "auth_basic" | "auth_basic_user_file" => scope.auth.push(one),
            "satisfy" => {
                scope.satisfy_any = Some(one.word(0) == "any");
                translation.judgements.translated(one);
            }
            "limit_req" => scope.limit = Some(one),
            "limit_req_status" | "limit_req_log_level" => {
                translation.judgements.built_in_but(one, "the status is 429");
            }
            "return" => scope.answer = scope.answer.or(Some(one)),
            "internal" => scope.internal = Some(one),
            "alias" => scope.alias = Some(one),
            "root" if !is_server => scope.root = Some(one),
            "fastcgi_pass" => {
                scope.php = Some(one);
                php(translation, one);
            }
            "try_files" => scope.try_files = Some(one),
            "rewrite" => scope.rewrites.push(one),
            "if" => scope.ifs.push(one),
            "location" => scope.locations.push(one),
            "valid_referers" => scope.referers = Some(one),
            "add_header"
            | "more_set_headers"
            | "expires"
            | "fastcgi_hide_header"
            | "proxy_hide_header"
            | "more_clear_headers"
            | "add_trailer" => scope.fields.push(one),
            "error_page" => scope.error_pages.push(one),
            _ => of_site(translation, one, is_server),
        }
    }
    scope
}

/// Directives about the whole site, and those without a translation.
fn of_site(translation: &mut Translation<'_>, one: &Directive, is_server: bool) {
    let value = translation.expanded(one.word(0));
    match one.name.as_str() {
        "root" => {
            translation.site.root.get_or_insert(value);
            translation.judgements.translated(one);
        }
        "listen" => {
            let is_tls = one
                .words
                .iter()
                .any(|word| word == "ssl" || word.ends_with(":443") || word == "443");
            if is_tls {
                translation
                    .judgements
                    .translated_but(one, "as listen_tls, if there is a certificate");
            } else {
                translation.judgements.built_in(one);
            }
        }
        "ssl_certificate" => {
            let key = translation.site.certificate.take().map(|(_, key)| key).unwrap_or_default();
            translation.site.certificate = Some((value, key));
            translation.judgements.translated(one);
        }
        "ssl_certificate_key" => {
            let chain = translation.site.certificate.take().map(|(chain, _)| chain);
            translation.site.certificate = Some((chain.unwrap_or_default(), value));
            translation.judgements.translated(one);
        }
        "client_max_body_size" => {
            let value = value.to_ascii_uppercase();
            if is_server && value != "0" {
                translation.site.limits.retain(|(key, _)| *key != "body_bytes");
                translation.site.limits.push(("body_bytes", value));
                translation.judgements.translated(one);
            } else {
                translation
                    .judgements
                    .not_translated(one, "limits.body_bytes is for the whole server");
            }
        }
        "fastcgi_read_timeout" | "fastcgi_send_timeout" | "fastcgi_connect_timeout" => {
            let seconds = value.trim_end_matches('s');
            if one.name == "fastcgi_read_timeout"
                && seconds.bytes().all(|byte| byte.is_ascii_digit())
            {
                translation.site.limits.retain(|(key, _)| *key != "origin_timeout");
                translation.site.limits.push(("origin_timeout", format!("{seconds}s")));
                translation.judgements.translated(one);
            } else {
                translation.judgements.built_in(one);
            }
        }
        "fastcgi_param" => parameter(translation, one),
        "set" if !one.word(1).contains('$') => {
            translation.judgements.translated_but(one, "as a constant")
        }
        "server_name" => {}
        _ => known::judge(translation.judgements, one),
    }
}

/// The FastCGI parameters in the files of nginx's package: `fastcgi_params`, `fastcgi.conf`,
/// `snippets/fastcgi-php.conf`. Pagewell sends those that PHP needs; `HTTP_PROXY` hides a client's field `Proxy`.
pub const FASTCGI_PARAMETERS: [&str; 25] = [
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "DOCUMENT_ROOT",
    "DOCUMENT_URI",
    "REQUEST_URI",
    "QUERY_STRING",
    "REQUEST_METHOD",
    "CONTENT_TYPE",
    "CONTENT_LENGTH",
    "SERVER_PROTOCOL",
    "REQUEST_SCHEME",
    "HTTPS",
    "GATEWAY_INTERFACE",
    "SERVER_SOFTWARE",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    REMOTE_USER,
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_ADDR",
    "REDIRECT_STATUS",
    "HTTP_HOST",
    "HTTP_PROXY",
];

/// The user of a password (Basic), which Pagewell sends only where it has checked the password itself.
const REMOTE_USER: &str = "REMOTE_USER";

fn parameter(translation: &mut Translation<'_>, one: &Directive) {
    match one.word(0) {
        REMOTE_USER => {
            let why = "PHP gets it by a rule with auth_file and auth_forward";
            translation.judgements.built_in_but(one, why);
        }
        name if FASTCGI_PARAMETERS.contains(&name) => translation.judgements.built_in(one),
        "PHP_VALUE" | "PHP_ADMIN_VALUE" => {
            let why = "set it in the pool of php-fpm: php_admin_value[NAME]";
            translation.judgements.not_translated(one, why);
        }
        _ => known::judge(translation.judgements, one),
    }
}

fn php(translation: &mut Translation<'_>, one: &Directive) {
    let written = translation.expanded(one.word(0));
    let server = translation.upstreams.get(&written).cloned();
    let address = server.as_ref().unwrap_or(&written).clone();
    if address.contains('$') {
        translation.site.php_at = None;
        translation.judgements.not_translated(one, "the address has a variable: write php.at");
    } else if !is_address(&address) {
        let why = match server {
            Some(server) => format!("{server} is no address with a port: write php.at"),
            None => format!("upstream {written} is in no given file: name that file, too"),
        };
        translation.judgements.not_translated(one, &why);
    } else if *translation.site.php_at.get_or_insert_with(|| address.clone()) == address {
        translation.judgements.translated(one);
    } else {
        translation.judgements.not_translated(one, "a site has one php-fpm");
    }
}

/// Whether `php.at` can have this value: the path of a Unix socket, or a host with a port.
fn is_address(text: &str) -> bool {
    match text.strip_prefix("unix:") {
        Some(path) => path.starts_with('/'),
        None => text.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
        }),
    }
}
