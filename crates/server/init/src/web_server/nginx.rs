//! The `server` blocks of nginx: a tokenizer of its configuration language, with `include`.
//!
//! Only directives with a meaning for Pagewell are kept. Of an `upstream` that `fastcgi_pass` or `proxy_pass` names,
//! the first server counts. The numbers of files and tokens are bounded, and so is the depth of `include`.

use super::{DEPTH_MAX, FILES_MAX, ServedAddress, ServedSite, WebServer, accepted_bytes};
use crate::machine::ExaminedMachine;
use crate::php_pools::{PREPEND_FILE, plain_address};
use import_rules::FASTCGI_PARAMETERS;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

const MAIN: &str = "/etc/nginx/nginx.conf";
/// The directory to which the paths of `include` are relative.
const DIRECTORY: &str = "/etc/nginx";
/// Maximum number of tokens of all files.
const TOKENS_MAX: usize = 200_000;
/// Directives that do work which Pagewell does not do.
const RULES: [&str; 10] = [
    "rewrite",
    "return",
    "deny",
    "auth_basic",
    "limit_req",
    "limit_conn",
    "add_header",
    "expires",
    "sub_filter",
    "error_page",
];

/// The sites in the configuration of nginx.
pub(super) fn sites(machine: &ExaminedMachine) -> Vec<ServedSite> {
    let mut reader = Reader {
        machine,
        sites: Vec::new(),
        blocks: Vec::new(),
        upstreams: Vec::new(),
        body_size: None,
        files: 0,
        tokens: 0,
    };
    reader.file(Path::new(MAIN), 0);
    // An `upstream` may be defined after the site that uses it.
    for site in &mut reader.sites {
        site.php = site.php.take().and_then(|named| address(named, &reader.upstreams));
        let passes_to = std::mem::take(&mut site.passes_to).into_iter();
        site.passes_to = passes_to.filter_map(|named| address(named, &reader.upstreams)).collect();
        if site.body_size.is_none() {
            site.body_size.clone_from(&reader.body_size);
        }
        if site.listens.is_empty() {
            site.listens.extend(listened("80", &[]));
        }
    }
    // Two blocks of one host: the redirect to HTTPS, and the site. Those without PHP or root come last.
    reader.sites.sort_by_key(|site| site.root.is_none());
    reader.sites
}

struct Reader<'a> {
    machine: &'a ExaminedMachine,
    sites: Vec<ServedSite>,
    /// The names of the open blocks, each with the index of its site.
    blocks: Vec<(String, Option<usize>)>,
    /// The names of the `upstream` blocks, each with the address of its first server.
    upstreams: Vec<(String, Option<String>)>,
    /// The size of a request's content for sites without one of their own.
    body_size: Option<String>,
    files: usize,
    tokens: usize,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, depth: usize) {
        self.files += 1;
        if self.files > FILES_MAX || depth > DEPTH_MAX {
            return;
        }
        let Some(text) = self.machine.text_or_none(path) else { return };
        let mut words: Vec<String> = Vec::new();
        for token in tokens(&text) {
            self.tokens += 1;
            if self.tokens > TOKENS_MAX {
                return;
            }
            match token {
                Token::Word(word) => words.push(word),
                Token::Open => self.open(&std::mem::take(&mut words), path),
                Token::Close => {
                    words.clear();
                    self.blocks.pop();
                }
                Token::End => self.directive(&std::mem::take(&mut words), depth),
            }
        }
    }

    fn open(&mut self, words: &[String], file: &Path) {
        let name = words.first().cloned().unwrap_or_default();
        let mut site = self.blocks.last().and_then(|(_, site)| *site);
        if name == "server" && self.blocks.iter().all(|(block, _)| block == "http") {
            self.sites.push(ServedSite::new(WebServer::Nginx, file));
            site = Some(self.sites.len() - 1);
        }
        if name == "upstream" {
            self.upstreams.push((words.get(1).cloned().unwrap_or_default(), None));
        }
        self.blocks.push((name, site));
    }

    fn directive(&mut self, words: &[String], depth: usize) {
        let [name, values @ ..] = words else { return };
        let first = values.first().map_or("", String::as_str);
        if name == "include" {
            let pattern = Path::new(DIRECTORY).join(first);
            for path in self.machine.matching(&pattern.to_string_lossy()) {
                self.file(&path, depth + 1);
            }
            return;
        }
        let block = self.blocks.last().map_or("", |(block, _)| block.as_str());
        if (block, name.as_str()) == ("upstream", "server") {
            if let Some((_, at)) = self.upstreams.last_mut() {
                at.get_or_insert(first.to_owned());
            }
            return;
        }
        if (block, name.as_str()) == ("http", "client_max_body_size") {
            self.body_size = accepted_bytes(first).map(|_| first.to_owned());
            return;
        }
        let is_direct = block == "server";
        let Some(site) = self.blocks.last().and_then(|(_, site)| *site) else { return };
        let site = &mut self.sites[site];
        match name.as_str() {
            "listen" if is_direct => site.listens.extend(listened(first, values)),
            "server_name" => values.iter().for_each(|name| site.name(name)),
            "root" if is_direct || site.root.is_none() => site.root = Some(PathBuf::from(first)),
            "ssl_certificate" => {
                let key = site.certificate.take().map(|(_, key)| key).unwrap_or_default();
                site.certificate = Some((first.into(), key));
            }
            "ssl_certificate_key" => {
                let certificate =
                    site.certificate.take().map(|(chain, _)| chain).unwrap_or_default();
                site.certificate = Some((certificate, first.into()));
            }
            // PHP_ADMIN_VALUE or PHP_VALUE, with one setting a line.
            "fastcgi_param" => {
                site.sets_basedir |= values.iter().any(|value| value.contains("open_basedir"));
                let is_prepend = |value: &String| {
                    value.contains("auto_prepend_file") && !value.contains(PREPEND_FILE)
                };
                site.sets_prepend |= values.iter().any(is_prepend);
                if !FASTCGI_PARAMETERS.contains(&first) {
                    site.parameter(first);
                }
            }
            "client_max_body_size" => site.accepts(first),
            "fastcgi_read_timeout" => site.waits_for_php = Some(first.to_owned()),
            "proxy_pass" => {
                let rest = first.split_once("://").map_or(first, |(_, rest)| rest);
                site.passes_to.extend(rest.split('/').next().map(str::to_owned));
            }
            "fastcgi_pass" if !first.contains('$') => site.php = Some(first.to_owned()),
            _ if RULES.contains(&name.as_str()) => site.rule(name),
            _ => {}
        }
    }
}

/// The address that `fastcgi_pass` or `proxy_pass` names: that of the first server if it is the name of an `upstream`.
/// `None` if it is neither a socket nor a host with a port.
fn address(named: String, upstreams: &[(String, Option<String>)]) -> Option<String> {
    let at = match upstreams.iter().find(|(name, _)| *name == named) {
        Some((_, first)) => first.clone()?,
        None => named,
    };
    at.contains(':').then(|| plain_address(&at))
}

/// The address of a `listen` directive, as this machine reaches it. `None` for a Unix socket, UDP, and other names than
/// `localhost`.
fn listened(written: &str, flags: &[String]) -> Option<ServedAddress> {
    let has = |flag: &str| flags.iter().any(|one| one == flag);
    if written.starts_with("unix:") || has("quic") {
        return None;
    }
    // In brackets, colons are part of the address.
    let end_of_host = written.find(']').map_or(0, |end| end + 1);
    let (host, port) = match written[end_of_host..].find(':') {
        Some(colon) => written.split_at(end_of_host + colon),
        None if written.bytes().all(|byte| byte.is_ascii_digit()) => ("*", written),
        None => (written, "80"),
    };
    let ip: IpAddr = match host {
        "*" | "0.0.0.0" | "localhost" => Ipv4Addr::LOCALHOST.into(),
        "[::]" => Ipv6Addr::LOCALHOST.into(),
        _ => host.trim_matches(['[', ']']).parse().ok()?,
    };
    let port = port.trim_start_matches(':').parse().ok()?;
    Some(ServedAddress { at: SocketAddr::new(ip, port), secure: has("ssl") })
}

enum Token {
    Word(String),
    Open,
    Close,
    End,
}

/// The tokens of a file: words with or without quotes, `{`, `}` and `;`. Comments are skipped.
fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        match next {
            '#' => rest = rest.find('\n').map_or("", |end| &rest[end..]),
            ';' | '{' | '}' => {
                found.push(match next {
                    ';' => Token::End,
                    '{' => Token::Open,
                    _ => Token::Close,
                });
                rest = &rest[1..];
            }
            '"' | '\'' => {
                let body = &rest[1..];
                let end = body.find(next).unwrap_or(body.len());
                found.push(Token::Word(body[..end].to_owned()));
                rest = body.get(end + 1..).unwrap_or_default();
            }
            _ if next.is_whitespace() => rest = &rest[next.len_utf8()..],
            _ => {
                let end = rest.find(|c: char| c.is_whitespace() || c == ';' || c == '{');
                // `${name}` is part of a word.
                let end = match end {
                    Some(at) if rest[at..].starts_with('{') && rest[..at].ends_with('$') => {
                        rest[at..].find('}').map(|close| at + close + 1)
                    }
                    end => end,
                };
                let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
                found.push(Token::Word(word.to_owned()));
                rest = behind;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_reached_from_this_machine() {
        let at = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let found = listened(&words[0], &words);
            found.map(|found| (found.at.to_string(), found.secure))
        };
        for (text, address, secure) in [
            ("80 default_server", "127.0.0.1:80", false),
            ("*:8443 ssl http2", "127.0.0.1:8443", true),
            ("192.0.2.1", "192.0.2.1:80", false),
            ("192.0.2.1:8080", "192.0.2.1:8080", false),
            ("localhost:8080", "127.0.0.1:8080", false),
            ("[::]:443 ssl", "[::1]:443", true),
            ("[2001:db8::1]", "[2001:db8::1]:80", false),
        ] {
            assert_eq!(at(text), Some((address.to_owned(), secure)), "{text}");
        }
        for text in
            ["unix:/run/nginx.sock", "443 quic", "www.example:80", "80000", "", ":", "]", "é"]
        {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn a_configuration_has_tokens() {
        let shown: Vec<String> = tokens("a b; # c;\nmap \"x y\" '{' { ~^a${b}c d; }")
            .into_iter()
            .map(|token| match token {
                Token::Word(word) => word,
                Token::Open => "<".into(),
                Token::Close => ">".into(),
                Token::End => ".".into(),
            })
            .collect();
        assert_eq!(shown.join("|"), "a|b|.|map|x y|{|<|~^a${b}|c|d|.|>");
        for text in ["\"", "${", "a{", "}", "", "é"] {
            let _ = tokens(text);
        }
    }
}
