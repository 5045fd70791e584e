//! Directives of Apache that need no translation of their own, or have none, with the reason.
//!
//! Not here: directives with a counterpart, which have modules of their own.

use super::section::SectionScope;
use super::{Translation, php_switches, redirects, rewrites};
use crate::source::Directive;

/// Directives that Pagewell does without configuration.
const BUILT_IN: [&str; 22] = [
    "adddefaultcharset",
    "addcharset",
    "addencoding",
    "addlanguage",
    "addoutputfilterbytype",
    "setoutputfilter",
    "addoutputfilter",
    "deflatecompressionlevel",
    "fileetag",
    "serversignature",
    "servertokens",
    "acceptpathinfo",
    "cgipassauth",
    "directoryslash",
    "listen",
    "sslprotocol",
    "sslciphersuite",
    "sslengine",
    "protocols",
    "allowoverride",
    "browsermatch",
    "defaulttype",
];

/// Directives for which Pagewell has no use.
const NOT_NEEDED: [&str; 22] = [
    "keepalive",
    "keepalivetimeout",
    "maxkeepaliverequests",
    "loadmodule",
    "errorlog",
    "customlog",
    "loglevel",
    "user",
    "group",
    "serveradmin",
    "contentdigest",
    "indexignore",
    "indexoptions",
    "limitxmlrequestbody",
    "usecanonicalname",
    "hostnamelookups",
    "enablemmap",
    "enablesendfile",
    "timeout",
    "browsermatchnocase",
    "rewritelog",
    "rewritemap",
];

/// Begins of the names of directives that restrict: passwords, web application firewalls, limits by client.
const RESTRICTING: [&str; 7] = ["auth", "<auth", "sec", "<require", "qs_", "dos", "sslrequire"];

/// Whether a directive, or one in its section, restricts requests.
pub(super) fn restricts(one: &Directive) -> bool {
    let name = one.name.as_str();
    let is_off = one.word(0).eq_ignore_ascii_case("off");
    let begins = || RESTRICTING.iter().any(|begin| name.starts_with(begin));
    let is_named = match name {
        "require" | "deny" | "allow" | "order" | "satisfy" | "sslverifyclient" | "include"
        | "includeoptional" | "<if" | "<elseif" | "<else" => true,
        "authname" => false,
        "rewriterule" => rewrites::refuses(one),
        _ if name.starts_with("redirect") => redirects::refuses(one),
        _ => begins() && !is_off || php_switches::switches_off(one),
    };
    is_named || one.inner().iter().any(restricts)
}

/// Judges a directive that no other module reads.
pub(super) fn judge(translation: &mut Translation<'_>, one: &Directive, context: &SectionScope) {
    let judgements = &mut *translation.judgements;
    let name = one.name.as_str();
    match name {
        "options" => options(translation, one),
        "directoryindex" => index(translation, one),
        "servername" | "serveralias" => {
            for host in one.words.iter().filter(|host| !host.contains('*')) {
                translation.site.host(host.split(':').next().unwrap_or_default());
            }
            judgements.translated(one);
        }
        "documentroot" => {
            translation.site.root.get_or_insert(one.word(0).to_owned());
            judgements.translated(one);
        }
        "sslcertificatefile" | "sslcertificatekeyfile" => certificate(translation, one),
        "limitrequestbody" => {
            translation.site.limits.push(("body_bytes", one.word(0).to_owned()));
            judgements.translated(one);
        }
        "satisfy" => judgements.translated(one),
        "xsendfile" => judgements.translated(one),
        "xsendfilepath" => {
            let directory = one.word(0).trim_end_matches('/').to_owned();
            let place = format!("{directory}/");
            translation.site.internal_files.push((place, directory));
            judgements.translated(one);
        }
        "sethandler" | "addhandler" | "removehandler" | "addtype" | "forcetype" | "removetype"
        | "php_flag" | "php_admin_flag" | "php_value" | "php_admin_value" => {
            php_switches::php(translation, one, context)
        }
        "setenvif" | "setenvifnocase" | "setenv" => {
            let text = one.shown().to_ascii_lowercase();
            if text.contains("authorization") || text.contains("gzip") || text.contains("no-gzip") {
                judgements.built_in(one);
            } else {
                judgements.not_translated(
                    one,
                    "variables of a request: set env[NAME] in the pool of php-fpm",
                );
            }
        }
        "requestheader" if one.words.iter().any(|word| word.eq_ignore_ascii_case("proxy")) => {
            judgements.built_in(one);
        }
        "sslrequiressl" => {
            translation.site.https_redirect = Some(301);
            translation.https.push(one.clone());
            judgements.translated_but(one, "as https_redirect");
        }
        "indexignore" => judgements.not_needed(one),
        _ if BUILT_IN.contains(&name) => judgements.built_in(one),
        _ if NOT_NEEDED.contains(&name) => judgements.not_needed(one),
        "include" | "includeoptional" => {
            judgements.lost_restriction(
                one,
                "it was not read; it may restrict requests: name the file, too",
            );
        }
        _ => {}
    }
}

fn certificate(translation: &mut Translation<'_>, one: &Directive) {
    let (mut chain, mut key) = translation.site.certificate.take().unwrap_or_default();
    let place = if one.name == "sslcertificatefile" { &mut chain } else { &mut key };
    one.word(0).clone_into(place);
    translation.site.certificate = Some((chain, key));
    translation.judgements.translated(one);
}

fn options(translation: &mut Translation<'_>, one: &Directive) {
    let odd = one.words.iter().find(|word| {
        matches!(
            word.trim_start_matches('+').to_ascii_lowercase().as_str(),
            "indexes" | "includes" | "multiviews" | "execcgi" | "all"
        )
    });
    match odd {
        Some(odd) => translation.judgements.not_translated(one, &format!("there is no {odd}")),
        None => translation.judgements.built_in(one),
    }
}

fn index(translation: &mut Translation<'_>, one: &Directive) {
    let first = one.word(0);
    if first.ends_with(".php") && first != "index.php" {
        translation.site.front_controller = Some(first.trim_start_matches('/').to_owned());
        translation.judgements.translated_but(one, "as front_controller");
    } else {
        translation.judgements.built_in(one);
    }
}
