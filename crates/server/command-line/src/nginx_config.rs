//! `pagewell nginx-config`: a configuration for an nginx in front of Pagewell that reads pages
//! through the memcached port.
//!
//! nginx uses the unchanged request URI as the key (PHP's `REQUEST_URI`) without the host, so only
//! one host is served. A miss, a method other than GET, or a request with a session goes to PHP: to
//! the requested script, else to the front controller. Hidden files are the same as Pagewell's
//! (`config::HIDDEN`). No file is written and nginx is not run. Values that nginx would reject or
//! misinterpret are refused here (`nginx_value`).

use crate::nginx_value::regex;
use crate::options::NginxConfigArgs;
use config::{HIDDEN, SOURCES};

/// Returns the configuration for these addresses.
pub fn text(args: &NginxConfigArgs) -> String {
    let name = &args.server_name;
    TEMPLATE
        .replace("@MEMCACHED@", &args.memcached)
        .replace("@PHP@", &args.php)
        .replace("@ROOT@", &args.root)
        .replace("@LISTEN@", &args.listen)
        .replace("@NAME@", &name.host)
        .replace("@HOST@", &name.regex(&args.listen))
        .replace("@HIDDEN@", &hidden())
        .replace("@SESSION@", &cookies(&args.session_cookies))
}

/// Returns a regular expression for a `Cookie` field with one of these cookies; `*` in a name
/// matches anything.
fn cookies(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| regex(name, "[^=;]*")).collect();
    format!(r"(?:^|;)\s*(?:{})\s*=", names.join("|"))
}

/// Returns a regular expression for a path with a hidden name; `$hidden` is the path up to that
/// name. It captures the first one: if that does not exist, nothing below it does.
fn hidden() -> String {
    let sources = SOURCES.iter().filter(|ending| **ending != "php");
    let names = HIDDEN.iter().map(|name| (*name).to_owned());
    let names = names.chain(sources.map(|ending| format!("*.{ending}")));
    let names: Vec<String> = names.map(|name| regex(&name, "[^/]*")).collect();
    let dotted = r"[.](?!(?<=^/[.])(?-i:well-known)(?:/|$))[^/]*";
    format!("^(?<hidden>(?:/[^/]*)*?/(?:{dotted}|{}))(?:/|$)", names.join("|"))
}

const TEMPLATE: &str = r#"# Inside http { }: nginx in front, pages out of Pagewell's memcached port, PHP behind.
#
# A page is stored under its address without the host: this memcached port belongs to one host, and
# requests for others are refused, since what PHP makes for them would be everybody's. Another name of
# the site: a server of its own that redirects here. Another site: a Pagewell of its own.

upstream pagewell_memcached {
    server @MEMCACHED@;
    keepalive 32;
}

server {
    listen @LISTEN@;
    server_name @NAME@;
    root @ROOT@;

    if ($http_host !~* "@HOST@") {
        return 421;
    }

    # What renders: the script that was asked for, where there is one, else the front controller.
    set $script /index.php;
    set $info "";
    set $asked "";
    set $behind "";
    set $inside "";
    if ($uri ~* "^(?<file>.+?\.php)(?<rest>/.*)?$") {
        set $asked $file;
        set $behind $rest;
    }
    if ($uri ~ "/$") {
        set $asked "${uri}index.php";
    }
    if (-f $document_root$asked) {
        set $script $asked;
        set $info $behind;
    }
    # A directory that has a script, without the slash.
    if ($uri ~ "[^/]$") {
        set $inside "${uri}/index.php";
    }
    if (-f $document_root$inside) {
        rewrite "^(.*)$" $1/ permanent;
    }

    # Never served: dotfiles, backups, dumps, sources, keys. Where there is no such file, the address is
    # the application's.
    location ~* "@HIDDEN@" {
        if (-e $document_root$hidden) {
            return 404;
        }
        try_files /.none @cached;
    }

    # Scripts are run, never shown.
    location ~* "\.php(?:/|$)" {
        try_files /.none @cached;
    }

    location / {
        try_files $uri @cached;
    }

    location @cached {
        error_page 404 418 502 504 = @php;
        if ($request_method !~ "^(?:GET|HEAD)$") {
            return 418;
        }
        # A request with a session cookie goes to PHP.
        if ($http_cookie ~ "@SESSION@") {
            return 418;
        }
        set $memcached_key $request_uri;
        default_type text/html;
        memcached_pass pagewell_memcached;
    }

    location @php {
        include /etc/nginx/fastcgi_params;
        fastcgi_param SCRIPT_FILENAME $document_root$script;
        fastcgi_param SCRIPT_NAME $script;
        fastcgi_param PATH_INFO $info;
        fastcgi_pass @PHP@;
    }
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cookies_are_matched_to_the_letter_but_for_the_star() {
        assert_eq!(
            cookies(&["SESS*".into(), "a.b^|$".into()]),
            r"(?:^|;)\s*(?:SESS[^=;]*|a[.]b\^[|][$])\s*="
        );
        assert!(hidden().contains("|[^/]*[.]bak|"), "{}", hidden());
    }
}
