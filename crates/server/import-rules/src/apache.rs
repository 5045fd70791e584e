//! Apache: `.htaccess` files, and the sections of a virtual host.
//!
//! | module | contents |
//! |---|---|
//! | `syntax` | lines and sections |
//! | `alternatives` | sections that depend on modules and versions |
//! | `section` | the paths to which a section or file applies |
//! | `rewrites` | `RewriteCond`, `RewriteRule` |
//! | `conditions` | the condition of a `RewriteCond` |
//! | `redirects` | `Redirect`, `RedirectMatch` |
//! | `access` | `Require`, `Order`, `Deny`, passwords |
//! | `php_switches` | handlers and types: php-fpm, and places without scripts |
//! | `answers` | `Header`, `Expires*`, `ErrorDocument` |
//!
//! A file in a directory applies below it: its place decides the paths of its rules.

mod access;
mod alternatives;
mod answers;
mod conditions;
mod known;
mod php_switches;
mod redirects;
mod rewrites;
mod section;
pub(crate) mod syntax;

use crate::ImportChoices;
use crate::draft::SiteDraft;
use crate::report::Judgements;
use crate::source::Directive;
use access::AccessDecisions;
use section::SectionScope;
use std::path::{Path, PathBuf};

/// The state of a translation.
pub(crate) struct Translation<'a> {
    pub(crate) site: SiteDraft,
    pub(crate) judgements: &'a mut Judgements,
    access: AccessDecisions,
    /// `SSLRequireSSL`, and the redirects to HTTPS.
    https: Vec<Directive>,
}

/// Translates all directives of all files.
pub(crate) fn translate(
    files: &[(PathBuf, Vec<Directive>)],
    choices: &ImportChoices<'_>,
    judgements: &mut Judgements,
) -> SiteDraft {
    let resolved = |(path, all): &(PathBuf, Vec<Directive>)| {
        (path.clone(), alternatives::resolved(all.clone(), judgements))
    };
    let files: Vec<_> = files.iter().map(resolved).collect();
    let mut translation = Translation {
        site: SiteDraft::default(),
        judgements,
        access: AccessDecisions::default(),
        https: Vec::new(),
    };
    let is_htaccess = |path: &Path| path.file_name().is_some_and(|name| name != "httpd.conf");
    let first = files.first().map(|(path, _)| path.as_path());
    let root = choices.root.or_else(|| first.filter(|path| is_htaccess(path))?.parent());
    for (path, directives) in &files {
        let base = root.and_then(|root| path.parent()?.strip_prefix(root).ok());
        let context = SectionScope::of_directory(base.unwrap_or(Path::new("")));
        block(&mut translation, directives, &context);
    }
    let access = std::mem::take(&mut translation.access);
    access.emit(&mut translation);
    https_without_certificate(&mut translation);
    let mut site = translation.site;
    site.rules.sort_by_key(|rule| u8::from(!rule.has("deny") && !rule.has("auth_file")));
    let has_host =
        files.iter().any(|(_, all)| all.iter().any(|one| one.name.starts_with("<virtualhost")));
    if site.root.is_none() && !has_host {
        site.root = root.filter(|root| root.is_absolute()).map(|root| root.display().to_string());
    }
    for (_, directives) in &files {
        judgements.complete(directives, known::restricts);
    }
    site
}

/// Without a certificate, the redirect to HTTPS is only a comment.
fn https_without_certificate(translation: &mut Translation<'_>) {
    if translation.site.certificate.is_some() {
        return;
    }
    for one in std::mem::take(&mut translation.https) {
        let why = "it needs a certificate and listen_tls: it is a comment";
        if one.name == "sslrequiressl" {
            translation.judgements.lost_restriction(&one, why);
        } else {
            translation.judgements.not_translated(&one, why);
        }
    }
}

/// Translates the directives of a file or section.
fn block(translation: &mut Translation<'_>, all: &[Directive], context: &SectionScope) {
    rewrites::emit(translation, all, context);
    access::collect(translation, all, context);
    answers::emit(translation, all, context);
    for one in all {
        match one.name.as_str() {
            "<virtualhost" | "<directory" | "<directorymatch" | "<location" | "<locationmatch"
            | "<files" | "<filesmatch" | "<limit" | "<limitexcept" => {
                section(translation, one, context)
            }
            "<requireall" | "<requireany" | "<requirenone" => {}
            name if name.starts_with("redirect") => redirects::emit(translation, one, context),
            _ => known::judge(translation, one, context),
        }
    }
}

fn section(translation: &mut Translation<'_>, one: &Directive, context: &SectionScope) {
    match context.inside(one, translation.site.root.as_deref()) {
        Ok(inner) => {
            if inner.is_exact {
                translation.judgements.translated(one);
            } else {
                translation
                    .judgements
                    .translated_but(one, "its restrictions apply to more paths than in Apache");
            }
            block(translation, one.inner(), &inner);
        }
        Err(why) => {
            let restricts = known::restricts(one);
            if restricts {
                translation.judgements.lost_restriction(one, &why);
            } else {
                translation.judgements.not_translated(one, &why);
            }
        }
    }
}
