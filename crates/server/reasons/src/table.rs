//! The table of the reasons: `Variant = name, [tables of the manual], "status", "advice"`, with the meaning as
//! the documentation of the variant. `docs/operating/errors.md` is made from it (`cargo xtask gen-docs`), so
//! links in a meaning are relative to that page.
//!
//! A new reason is one row here. A status is that of the response, if Pagewell makes it; the advice is for the
//! operator or the author of the site.

use super::ReasonTable;
use super::refusal::Refusal;
use http::StatusCode;
use http_cache::{Failure, ForwardReason, NotFreshened, NotStored};
use page_store::StoreRefusal;
use site_rules::{BypassBecause, NoOwner, Refusal as RuleRefusal};

macro_rules! reasons {
    ($($(#[doc = $meaning:literal])+ $name:ident = $text:expr, [$($section:ident),*], $status:literal, $advice:literal;)*) => {
        /// The reason why a response is not stored, a page not used, or a request forwarded, refused or answered
        /// by Pagewell itself. [`as_str`](Reason::as_str) is its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[doc = $meaning])+ $name,)*
        }

        impl Reason {
            /// All reasons, in the order of the manual.
            pub const ALL: &'static [Reason] = &[$(Reason::$name),*];

            /// The name of the reason, as `Cache-Status`, the log and explanations show it.
            pub fn as_str(self) -> &'static str {
                #[cfg(feature = "names-by-choice")]
                if let Some(name) = crate::other_names::of(self) {
                    return name;
                }
                self.name()
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Reason::$name => const { $text },)*
                }
            }

            /// Returns the remedy in a sentence, if there is one.
            pub fn advice(self) -> Option<&'static str> {
                let advice = match self {
                    $(Reason::$name => $advice,)*
                };
                (!advice.is_empty()).then_some(advice)
            }

            /// Returns the meaning, in Markdown.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Reason::$name => concat!($($meaning),+).trim_ascii(),)*
                }
            }

            /// The status code of the response, in Markdown, if Pagewell makes it; else empty.
            pub fn status(self) -> &'static str {
                match self {
                    $(Reason::$name => $status,)*
                }
            }

            /// The tables of the manual in which it stands.
            pub fn sections(self) -> &'static [ReasonTable] {
                match self {
                    $(Reason::$name => &[$(ReasonTable::$section),*],)*
                }
            }
        }
    };
}

reasons! {
    // Why a request was sent to the origin.
    /// No page is cached for this address.
    UriMiss = ForwardReason::UriMiss.as_str(), [Forwarded], "", "Request the page, and explain it again: the response shows whether it can be stored.";
    /// A page is cached, but for other visitors (`Vary`).
    VaryMiss = ForwardReason::VaryMiss.as_str(), [Forwarded], "", "Name only fields with few different values in Vary; Accept-Encoding needs no Vary here.";
    /// No page is cached, for a reason that is not known any more.
    Miss = ForwardReason::Miss.as_str(), [Text], "", "";
    /// The page is no longer fresh. If it has a validator, it is only revalidated (`fwd-status=304`).
    Stale = ForwardReason::Stale.as_str(), [Forwarded], "", "Send a longer TTL, with tags that purge the page when its data changes.";
    /// The cache has only a part of the page, and the request is for another part.
    Partial = ForwardReason::Partial.as_str(), [Forwarded], "", "Nothing: the rest of the page is fetched.";
    /// The method of the request is not GET. With status 405: a request for a file with a method other than GET or HEAD.
    Method = ForwardReason::Method.as_str(), [Forwarded, Refused, NotStored], "405", "Only responses to GET are stored.";
    /// The request is a GET with content, has `Authorization`, or `detail` gives the reason (below).
    Bypass = ForwardReason::Bypass.as_str(), [Forwarded], "", "Request the page with GET, without content and without Authorization.";
    /// The visitor wanted a newer page, and `cache.request_directives` is `honour`.
    Request = ForwardReason::Request.as_str(), [Forwarded], "", "Nothing, or set cache.request_directives to ignore.";

    // Why a request bypassed the cache.
    /// The request has a cookie of a session, a login or a cart.
    SessionCookie = BypassBecause::SessionCookie.as_str(), [Bypassed], "", "Start sessions only where they are needed. Or share pages that are the same for everybody (shared_with_sessions in a rule), or configure private copies (private.cookies).";
    /// The request has a cookie of `private.cookies` twice. It gets no private copies.
    OwnerCookieTwice = NoOwner::Twice.as_str(), [Bypassed], "", "Set the cookie for one path and domain only.";
    /// The request has over 4 KB of cookies, or more than four cookies that identify an owner. It gets no private copies.
    OwnerCookiesTooLong = NoOwner::TooLong.as_str(), [Bypassed], "", "Name fewer cookies in private.cookies.";
    /// The request has both a session cookie and `Authorization`. It gets no private copies.
    OwnerAuthorization = NoOwner::Authorization.as_str(), [Bypassed], "", "Use either the session's cookie or Authorization.";
    /// The request has a cookie that is on no list, so the response is for its client. With `fwd=bypass`: `cookies.unknown` is `bypass`, or the stored page has its TTL only from a rule.
    UnknownCookie = BypassBecause::UnknownCookie.as_str(), [Bypassed, NotStored], "", "Name the cookie in cookies.ignore if pages do not depend on it, or in cookies.session if they do. Pages marked as shared (public, s-maxage, tags) need neither.";
    /// The request has a field that identifies the client: `X-Api-Key`, `X-WP-Nonce`, `X-Auth-Token` and [similar ones](../guide/cache-key.md#request-fields).
    CredentialField = BypassBecause::Credential.as_str(), [Bypassed], "", "Nothing, if the response depends on the field. Otherwise name it in keys.fields, to store one copy for each value.";
    /// The request is for a part or another form of the page: `X-Requested-With: XMLHttpRequest`, `HX-Request`, `X-Inertia`, `X-PJAX`, `Turbo-Frame`.
    PartialPage = BypassBecause::PartialPage.as_str(), [Bypassed], "", "Name the fields in keys.fields, to store one copy for each value.";
    /// The query has a parameter with [personal data](../guide/cache-key.md#personal-data-in-the-query): `email`, `token`, `nonce`, `order_id`, a mail address.
    PersonalQuery = BypassBecause::PersonalQuery.as_str(), [Bypassed], "", "Nothing, if the parameter is personal. Otherwise name it in keys.keep.";
    /// A field of `keys.fields` has a value over 256 bytes.
    FieldTooLong = BypassBecause::FieldTooLong.as_str(), [Bypassed], "", "Send a shorter value.";
    /// The visitor has just written, and a rule has `after_write`.
    AfterWrite = BypassBecause::AfterWrite.as_str(), [Bypassed], "", "Nothing: it ends after the time in after_write.";
    /// A rule has `bypass` or `auth_forward`; with `when_status` or `when_header`, the response was not stored.
    Rule = BypassBecause::Rule.as_str(), [Bypassed, NotStored], "", "Nothing, if the rule is intended; otherwise change the rule.";
    /// The site is in a trial (`mode`).
    Trial = "trial", [Bypassed], "", "pagewell trial shows whether it can end.";
    /// The connection belongs to a process that another one has [replaced](reload.md#zero-downtime-restart).
    HandedOver = "handed-over", [Bypassed], "", "Nothing: the next connection reaches the new process.";
    /// The connection belongs to a process that is stopping.
    Stopping = "stopping", [Bypassed], "", "Nothing: the next connection reaches another process.";

    // Further words in the response to a write.
    /// `database.barrier` ran out, the database is not followed, or another [node](../guide/several-machines.md) was late (`cluster.barrier`). For a moment the visitor can see old pages.
    ChangesLate = "changes-late", [Late], "", "See database-broken and cluster-pending in the log. If the server is only slow, raise database.barrier or cluster.barrier.";

    // The origin did not answer.
    /// Pagewell could not connect to the origin.
    OriginRefused = Failure::Refused.as_str(), [Failed], "502, `Retry-After: 2`", "Is the origin running, and is its address right? See the log.";
    /// The connection ended before the response was complete.
    HungUp = Failure::HungUp.as_str(), [Failed], "502", "See origin-stderr and php-fpm-log in the log: a child crashed, or the origin was restarted.";
    /// The origin could not be reached within `origin_connect_timeout`, or sent nothing for `origin_timeout`.
    TimedOut = Failure::TimedOut.as_str(), [Failed], "504", "Find the cause of the delay, or raise limits.origin_timeout.";
    /// The response was neither HTTP nor CGI, or a script redirected within the site more than five times.
    InvalidResponse = Failure::InvalidResponse.as_str(), [Failed], "502", "See origin-invalid in the log.";
    /// No place at the origin was free for `origin_queue_timeout`, or `origin_queue` requests were waiting.
    Overloaded = Failure::Overloaded.as_str(), [Failed], "503, `Retry-After: 2`", "Use more children (php.children), or find pages that are slow or not stored (pagewell misses).";
    /// `misses.mode` is `protect`, the origin is overloaded, and requests of other clients or for other URLs came first.
    Deferred = Failure::Deferred.as_str(), [Failed], "503, `Retry-After: 2`", "If it lasts, pagewell misses names the URLs and the clients. The client may repeat the request.";
    /// A rule limits the renders of its pages (`renders`), and clients without a confirmed session have requested more.
    RendersLimited = "renders-limited", [Failed], "429 with `Retry-After`", "Raise renders in the rule, if these were visitors.";
    /// An [ESI](../guide/esi.md) fragment failed, and the template does not permit leaving it out.
    FragmentFailed = "fragment-failed", [Failed], "502", "See fragment-failed in the log; onerror=\"continue\" leaves a fragment out.";
    /// The template of a page with ESI fragments is longer than `limits.page_bytes`.
    PageTooLarge = "page-too-large", [Failed], "502", "Raise limits.page_bytes, or shorten the template.";
    /// The origin answered with this status.
    Status500 = Failure::Status(StatusCode::INTERNAL_SERVER_ERROR).as_str(), [Text], "", "";
    /// The origin answered with this status.
    Status502 = Failure::Status(StatusCode::BAD_GATEWAY).as_str(), [Text], "", "";
    /// The origin answered with this status.
    Status503 = Failure::Status(StatusCode::SERVICE_UNAVAILABLE).as_str(), [Text], "", "";
    /// The origin answered with this status.
    Status504 = Failure::Status(StatusCode::GATEWAY_TIMEOUT).as_str(), [Text], "", "";
    /// The origin answered with another status that is a failure.
    OtherStatus = Failure::Status(StatusCode::IM_A_TEAPOT).as_str(), [Text], "", "";

    // The request was refused.
    /// A wrong request line, a space before a colon, a folded line, or a control character.
    Malformed = Refusal::Malformed.as_str(), [Refused], "400", "";
    /// A line ends in LF without CR.
    BareLineFeed = Refusal::BareLineFeed.as_str(), [Refused], "400", "";
    /// HTTP/1.1 without `Host`.
    HostMissing = Refusal::HostMissing.as_str(), [Refused], "400", "";
    /// More than one `Host`.
    HostRepeated = Refusal::HostRepeated.as_str(), [Refused], "400", "";
    /// `Host` is no host name or address, or its port is invalid.
    HostInvalid = "host-invalid", [Refused], "400", "";
    /// `Host` is neither `site.host` nor one of `site.aliases`, and `site.other_hosts` is `refuse`.
    HostUnknown = "host-unknown", [Refused], "421", "Name the host in site.host or site.aliases.";
    /// A [rule](../guide/rules.md#deny-requests) refuses the request (`deny`). The status is that of the rule.
    Denied = "denied", [Refused], "403, 404, 405 with `Allow`, 410, 503 with `Retry-After`", "Nothing, if the rule is intended; otherwise change the rule with deny, or exempt the path with deny = false.";
    /// A [rule](../guide/rules.md#rate-limits) limits the requests of one client (`limit`), or its wrong passwords are limited (`auth_file`).
    RateLimited = Failure::Limited(0).as_str(), [Refused], "429 with `Retry-After`", "Nothing, if the limit is intended; otherwise raise its rate or burst, or exempt the path with limit = false. Behind a proxy, set trusted_proxies.";
    /// A [rule](../guide/rules.md#passwords) demands a password (`auth_file`), and the request has none that is right.
    PasswordRequired = "password-required", [Refused], "401", "Send a user and password of the file; to open a path, exempt it with auth_file = false.";
    /// More passwords are to be checked than `limits.password_checks` and 64 more, or the disk with the file hangs.
    PasswordsBusy = "passwords-busy", [Refused], "503, `Retry-After: 2`", "Limit the requests of one client to this path (limit with count = \"all\"), or use a cheaper hash.";
    /// The request target is for a forward proxy (`https://…`, a user name), is `*` with GET, or contains `<`, `>` or a backquote, which must be percent-encoded.
    TargetInvalid = Refusal::TargetInvalid.as_str(), [Refused], "400", "";
    /// The request target is longer than `limits.uri_bytes`.
    TargetTooLong = Refusal::TargetTooLong.as_str(), [Refused], "414", "";
    /// The path has a wrong escape or an escaped NUL, or leads above the root.
    PathMalformed = "path-malformed", [Refused, Answered], "400", "Write the path without a wrong escape or steps above the root.";
    /// Two `Content-Length`, or one that is not a number.
    LengthInvalid = Refusal::LengthInvalid.as_str(), [Refused], "400", "";
    /// `Content-Length` and `Transfer-Encoding` together.
    LengthAndCoding = Refusal::LengthAndCoding.as_str(), [Refused], "400", "";
    /// The chunks of the content are invalid, or the content ended too soon.
    ContentMalformed = Refusal::ContentMalformed.as_str(), [Refused], "400", "";
    /// A transfer coding other than `chunked`, or any in HTTP/1.0.
    CodingUnknown = Refusal::CodingUnknown.as_str(), [Refused], "501", "";
    /// A header section over `limits.header_bytes`, or a field over 65,500 bytes (FastCGI).
    HeadTooLarge = Refusal::HeadTooLarge.as_str(), [Refused], "431", "";
    /// More lines than `limits.headers`.
    TooManyHeaders = Refusal::TooManyHeaders.as_str(), [Refused], "431", "";
    /// Content over `limits.body_bytes`.
    ContentTooLarge = Refusal::ContentTooLarge.as_str(), [Refused], "413", "";
    /// The header section took longer than `limits.header_timeout`.
    HeadTimeout = Refusal::HeadTimeout.as_str(), [Refused], "408", "";
    /// No content arrived for `limits.body_timeout`.
    ContentTimeout = Refusal::ContentTimeout.as_str(), [Refused], "408", "";
    /// The content arrived more slowly than `limits.body_rate`.
    ContentTooSlow = Refusal::ContentTooSlow.as_str(), [Refused], "408", "";
    /// Request content on disk has reached `limits.body_disk`.
    ContentNoRoom = Refusal::ContentNoRoom.as_str(), [Refused], "503, `Retry-After: 10`", "";
    /// A write reached a [node](../guide/several-machines.md#refuse-writes-that-cannot-be-published) that cannot publish its changes, and `cluster.unpublished` is `refuse`: see `cluster-pending` in the log.
    ClusterUnpublished = "cluster-unpublished", [Refused], "503, `Retry-After: 2`", "";
    /// The content could not be written to disk, or not read again: see `content-not-kept` in the log.
    ContentNotKept = Refusal::ContentNotKept.as_str(), [Refused], "507", "";
    /// `limits.upgrades` connections use another protocol (WebSocket) already.
    UpgradesFull = "upgrades-full", [Refused], "503", "";
    /// The client's address has `limits.http2_streams_per_address` requests over HTTP/2 already.
    TooManyStreams = Refusal::TooManyStreams.as_str(), [Refused], "503", "";
    /// CONNECT and TRACE are not supported.
    MethodConnect = Refusal::MethodConnect.as_str(), [Refused], "405", "";
    /// CONNECT and TRACE are not supported.
    MethodTrace = "method-trace", [Refused], "405", "";
    /// `PURGE`, `BAN` or a similar method from a client that [may not purge](../guide/purging.md#who-may-purge).
    MethodNotAnswered = "method-not-answered", [Refused], "405", "";

    // Pagewell has answered itself.
    /// There is no such file and no front controller, or the file is never served ([Files and scripts](files.md)).
    NotFound = "not-found", [Answered], "404", "Is the file there? Is there a front controller (index.php)?";
    /// Only challenges of the certificate authority are answered here, because `[acme]` manages the host's certificate.
    AcmeChallenge = "acme-challenge", [Answered], "404", "Challenges of other ACME clients: give their certificate in a [[tls]], or use another host.";
    /// The site redirects to HTTPS (`https_redirect`).
    ToHttps = "to-https", [Answered], "301 or 308", "Request the https address.";
    /// The host is an alias, and the site redirects to its canonical host (`site.canonical_redirect`).
    ToCanonical = "to-canonical", [Answered], "301 or 308", "Request the canonical host (site.host).";
    /// A [rule](../guide/rules.md#redirects) or a line of a redirect file has another address for it.
    Redirected = "redirected", [Answered], "301, 302, 303, 307, 308, 410", "Nothing, if the redirect is intended; otherwise change the rule or the line.";
    /// The file is never served: its name is hidden, or it is source code. The response says `not-found`.
    HiddenName = "hidden-name", [Answered], "404", "A file with this name is never served: rename it, or change site.hidden.";
    /// The file is never served: its name is hidden, or it is source code. The response says `not-found`.
    SourceHidden = "source-hidden", [Answered], "404", "Source code is never served. Name the extensions of scripts to run in site.scripts.";
    /// The URL leads to a script that does not run: a [rule](../guide/rules.md#scripts) has `php = false`, or `site.entry_points` does not name it.
    ScriptRefused = "script-refused", [Answered], "404", "Nothing, if the script should not run; otherwise write a rule with php = true for its path, or name it in site.entry_points.";
    /// A symbolic link leads outside the document root: allow its directory with `site.allow_symlinks`. The response says `not-found`.
    LinkOutsideRoot = "link-outside-root", [Answered], "404", "A symbolic link leads outside the document root: allow the directory with site.allow_symlinks.";
    /// A symbolic link leads to a name that is never served. The response says `not-found`.
    LinkToHidden = "link-to-hidden", [Answered], "404", "A symbolic link leads to a name that is never served: link to another name, or change site.hidden.";
    /// The path is a directory, and has no slash at its end.
    AddSlash = "add-slash", [Answered], "301", "";
    /// The file cannot be read, usually because of its permissions: see `file-failed` in the log.
    FileFailed = "file-failed", [Answered], "500", "Check the file's permissions and the disk: see file-failed in the log.";
    /// The request has `only-if-cached`, and the page is not cached.
    OnlyIfCached = "only-if-cached", [Answered], "504", "Remove only-if-cached.";
    /// `If-Match` or `If-Unmodified-Since` is false for the stored page.
    PreconditionFailed = "precondition-failed", [Answered], "412", "";
    /// The requested range is outside the page.
    Range = "range", [Answered], "416", "";
    /// A bug in Pagewell: please report it, with its source location in the log.
    Bug = "bug", [Answered], "500", "";
    /// A purge request was executed.
    Purged = "purged", [Text], "", "";
    /// The response is a file of the site.
    File = "file", [Text], "", "";

    // The response was not stored.
    /// The page has no TTL.
    NoLifetime = NotStored::NoLifetime.as_str(), [NotStored], "", "Set tags, send Cache-Control with max-age or s-maxage, or give the site a default lifetime.";
    /// The origin answered with an error (5xx) without a TTL above 0, or with `private`, `no-store` or a cookie.
    ServerError = NotStored::ServerError.as_str(), [NotStored], "", "Look into PHP's log or the database: errors are not stored.";
    /// The page sets a cookie, which is for one visitor.
    SetCookie = NotStored::SetCookie.as_str(), [NotStored], "", "Set cookies on separate pages, or start sessions only when needed.";
    /// A private page is compressed, and `codings.make = []`, or the format is unknown.
    OwnerCoded = "owner-coded", [NotStored], "", "Turn compression off in the application: Pagewell compresses pages.";
    /// The page forbids storing it.
    Private = NotStored::Private.as_str(), [NotStored], "", "If the page is the same for everybody, remove private. If only some fields are private, name them: private=\"x-name\".";
    /// The page forbids storing it, as PHP's `session_start()` does.
    NoStore = NotStored::NoStore.as_str(), [NotStored], "", "If the page is the same for everybody, remove no-store: do not call session_start() there.";
    /// The application does not offer the page: it has [`X-Pagewell-Refusal`](../http-caching.md#the-applications-reason-not-to-offer-a-page), although its other fields permit storing it.
    NotOffered = NotStored::NotOffered.as_str(), [NotStored], "", "If the page is the same for everybody, send it without X-Pagewell-Refusal.";
    /// The request has `Authorization`, and the page has none of `public`, `s-maxage`, `must-revalidate`.
    Authorization = NotStored::Authorization.as_str(), [NotStored], "", "Send public, s-maxage or must-revalidate if the page is the same for everybody.";
    /// The page is stale at once and has no validator.
    NeverReusable = NotStored::NeverReusable.as_str(), [NotStored], "", "Send a longer max-age, a validator (ETag, Last-Modified), or stale-while-revalidate.";
    /// The page redirects to its own address, after URL normalisation.
    RedirectToItself = RuleRefusal::RedirectToItself.as_str(), [NotStored], "", "Redirect to another address, or change the URL normalisation ([keys]).";
    /// The request has a custom field, which the response's `Vary` does not name.
    FieldNotInKey = "field-not-in-key", [NotStored], "", "Name the request field in keys.harmless_fields if no page depends on it. Otherwise name it in Vary or in keys.fields.";
    /// A page of signed-in visitors ([LiteSpeed's ESI](../guide/litespeed.md#cookies)): the origin got a cookie that is neither in the cache key nor a known login.
    CookieNotInKey = "cookie-not-in-key", [NotStored], "", "Name the cookie in cookies.ignore if pages do not depend on it, in vary_cookies of a rule if they do, or in cookies.session if it is the visitor's login.";
    /// `Vary` names a field that identifies a client or its group, and that clients may not set (`X-User-Context-Hash`, `X-Forwarded-For`).
    VaryOfOneClient = "vary-of-one-client", [NotStored], "", "Vary by a cookie that a rule names (vary_cookies), or send private.";
    /// The response names a file for the web server to send (`X-Sendfile`, `X-Accel-Redirect`).
    Sendfile = "sendfile", [NotStored], "", "Send the file from the script. If a web server in front of Pagewell sends it, name the field in dialects.pass_on.";
    /// The response is an event stream, or has `X-Accel-Buffering: no`.
    Streamed = "streamed", [NotStored], "", "Nothing, if it is a stream; otherwise remove X-Accel-Buffering: no.";
    /// PHP reported a fatal error after the status was sent. Known only if PHP logs to its standard error.
    PhpFatalError = "php-fatal-error", [NotStored], "", "Fix the page: PHP's error is in the log (origin-stderr).";
    /// `Vary: *`.
    VaryStar = NotStored::VaryStar.as_str(), [NotStored], "", "Name the fields that the page depends on instead of Vary: *.";
    /// `Vary` is no list of field names, or `X-LiteSpeed-Vary` none of `cookie=name`.
    VaryUnreadable = NotStored::VaryUnreadable.as_str(), [NotStored], "", "List field names in Vary, separated by commas.";
    /// `Vary` or `X-LiteSpeed-Vary` has more than 16 names.
    VaryTooLong = NotStored::VaryTooLong.as_str(), [NotStored], "", "Name fewer fields in Vary.";
    /// `X-LiteSpeed-Vary` has `value=`, and this request has no such mark.
    VaryValue = NotStored::VaryValue.as_str(), [NotStored], "", "Separate device classes with a rule, or remove value= from X-LiteSpeed-Vary.";
    /// The page sets a cookie that separates variants (`_lscache_vary`, `X-Magento-Vary`).
    VaryCookieSet = RuleRefusal::VaryCookieSet.as_str(), [NotStored], "", "Nothing: the next request has the cookie.";
    /// `lsc-cookie` has no name or no value, or there are more than eight, or over 4 KB of them.
    SharedCookies = NotStored::SharedCookies.as_str(), [NotStored], "", "Send fewer or valid cookies.";
    /// `lsc-cookie` would give every visitor the same session cookie.
    SessionForAll = RuleRefusal::SessionForAll.as_str(), [NotStored], "", "Use another name, or Set-Cookie on a separate page.";
    /// LiteSpeed's ESI elements are not processed here, or the page is compressed or a part.
    EsiUnsupported = NotStored::EsiUnsupported.as_str(), [NotStored], "", "Turn ESI off in the application or its plugin.";
    /// The response for a fragment of LiteSpeed's ESI is not a success.
    FragmentError = "fragment-error", [NotStored], "", "Fix the fragment.";
    /// `Cache-Groups` is not a list of strings.
    TagsUnreadable = NotStored::TagsUnreadable.as_str(), [NotStored], "", "Write Cache-Groups: \"news\", \"news:4\".";
    /// A tag over 1,024 bytes, over 128 KiB of tags, or more than 1,000 tags.
    TagsTooLong = NotStored::TagsTooLong.as_str(), [NotStored], "", "Use fewer or shorter tags.";
    /// A tag over 1,024 bytes.
    TagTooLong = StoreRefusal::TagTooLong.as_str(), [NotStored], "", "Use shorter tags.";
    /// More than 1,000 tags.
    TooManyTags = StoreRefusal::TooManyTags.as_str(), [NotStored], "", "Use fewer tags: name a whole kind.";
    /// A private page has private tags and no owner, or two owners.
    OwnerUnclear = StoreRefusal::OwnerUnclear.as_str(), [NotStored], "", "Please report it: this is a bug in Pagewell.";
    /// The page is longer than `limits.page_bytes`, or than an eighth of the page budget.
    TooLarge = NotStored::TooLarge.as_str(), [NotStored], "", "Raise the limit, or leave the page uncached.";
    /// Responses in progress use half of `limits.client_backlog_bytes`.
    MemoryShort = NotStored::MemoryShort.as_str(), [NotStored], "", "Raise memory, or limits.client_backlog_bytes.";
    /// The response is a part (206).
    PartialContent = NotStored::PartialContent.as_str(), [NotStored], "", "Send the whole content (200): ranges are served from the stored page.";
    /// The response is a 304.
    NotModified = NotStored::NotModified.as_str(), [NotStored], "", "Send 304 only in response to If-None-Match or If-Modified-Since.";
    /// The response is not final (1xx).
    Interim = NotStored::Interim.as_str(), [NotStored], "", "Only final responses are stored.";
    /// A range of a page that is not stored came without a matching `Content-Range`.
    PartUnreadable = NotStored::PartUnreadable.as_str(), [NotStored], "", "Send Content-Range with the exact byte positions and the total length.";
    /// A range of a page that is not stored came without a strong `ETag`.
    PartNotStrong = NotStored::PartNotStrong.as_str(), [NotStored], "", "Send a strong ETag with the parts of a response.";
    /// `must-understand` with a status that RFC 9110 does not define.
    StatusNotUnderstood = NotStored::StatusNotUnderstood.as_str(), [NotStored], "", "Remove must-understand, or use a status that RFC 9110 defines.";
    /// A quoted string in `Cache-Control` is not closed, as in `x="private`.
    DirectivesUnreadable = NotStored::DirectivesUnreadable.as_str(), [NotStored], "", "Close every quoted string in Cache-Control.";
    /// The visitor sent `no-store`, and `cache.request_directives` is `honour`.
    RequestNoStore = NotStored::RequestNoStore.as_str(), [NotStored], "", "Nothing, or set cache.request_directives to ignore.";
    /// The data of the page changed during the render.
    ChangedSince = StoreRefusal::ChangedSince.as_str(), [NotStored], "", "Nothing, unless it is frequent: then find the source of the changes (pagewell explain --tag).";
    /// The origin has given a newer response for this page.
    Superseded = StoreRefusal::Superseded.as_str(), [NotStored], "", "Nothing: the newer response counts.";
    /// Too many changes arrived during the render to check the page against them.
    LeaseTooOld = StoreRefusal::LeaseTooOld.as_str(), [NotStored], "", "Nothing, unless it is frequent: then make the page faster, or send fewer invalidations.";
    /// A change of the page's data is not yet visible to every reader of the database.
    Unsettled = StoreRefusal::Unsettled.as_str(), [NotStored], "", "Nothing: the page is stored a moment later. If it stays so, a database is not followed: see database-broken in the log.";
    /// [Automatic dependencies](../guide/automatic.md): not all statements of the render are known. With `stored`: the page declares a lifetime, and is stored for 60 seconds (`automatic.untracked`).
    ReadsUnseen = "reads-unseen", [NotStored], "", "See reads-refused in the log for the reason (automatic dependencies).";
    /// The page may show values of a cache that no statement shows (APCu, `object-cache.php`, Redis).
    ReadsHidden = "reads-hidden", [NotStored], "", "Turn off the cache that the log names (reads-refused), such as APCu or object-cache.php, or send tags for the page.";
    /// No caching headers, and a field that is [one client's](../guide/automatic.md#what-is-stored), such as `Nonce` or `Cart-Token`.
    PersonalField = "personal-field", [NotStored], "", "Remove the response field that is one client's (a nonce, a cart, a token). Or send caching headers, if the page is the same for everybody.";
    /// No caching headers, and no page, feed, style sheet or script.
    ContentType = "content-type", [NotStored], "", "Send caching headers, or name the media type in automatic.content_types.";
    /// The page could not be stored before, so it was rendered with the visitor's own address, browser and language.
    AsSent = "as-sent", [NotStored], "", "Nothing: the next render can be stored.";
    /// An [audit](../guarantees.md#audit) found pages of this URL to be made for one visitor or one kind of device. For an hour, only renders without anything of a visitor are stored, or none.
    Audited = "audited", [NotStored], "", "See audit-found in the log for the place, and add what the page depends on to the key (vary_cookies, Vary), or bypass the path.";
    /// The response was sent while it was made.
    InProgress = "in-progress", [NotStored], "", "Nothing: whether it was stored is known only at its end.";
    /// A statement may read something that no changed row tells, such as a view or a stored function.
    ReadsUnknown = "reads-unknown", [NotStored], "", "Change the statement (reads-refused in the log), or send a lifetime and tags for the page.";
    /// A row that the page shows changed during the render.
    ReadsChanged = "reads-changed", [NotStored], "", "Nothing, unless it is frequent.";
    /// The page ran more than 900 statements, or those of all pages need more than an eighth of `memory`.
    ReadsTooMany = "reads-too-many", [NotStored], "", "Raise memory, or send a lifetime and tags for the page.";
    /// A 304 response is about another response than the stored one, so the whole page was requested.
    OtherValidator = NotFreshened::OtherValidator.as_str(), [Text], "", "";
    /// As the source of an invalidation: a later response was stored in place of the page.
    Replaced = "replaced", [Text], "", "";
    /// As the source of an invalidation: a later response was not stored for its owner.
    NotKept = "not-kept", [Text], "", "";

    // A stored page is the response, although it is not simply fresh.
    /// The stale page was served while it is refreshed.
    StaleWhileRevalidate = "stale-while-revalidate", [Text], "", "";
    /// The request permits a stale page.
    MaxStale = "max-stale", [Text], "", "";
    /// The page is one that signed-in visitors share.
    SignedIn = "signed-in", [Text], "", "";

    // A fragment of an ESI template failed (log event `fragment-failed`).
    /// There are too many fragments on the page.
    FragmentTooMany = "too-many", [Text], "", "";
    /// The fragments are nested too deeply.
    FragmentTooDeep = "too-deep", [Text], "", "";
    /// The fragment was not complete in time.
    FragmentTooLate = "too-late", [Text], "", "";
    /// The address has another host, or is no address.
    FragmentNotOfThisSite = "not-of-this-site", [Text], "", "";
    /// The response is compressed although the request did not permit it.
    FragmentInACoding = "in-a-coding", [Text], "", "";
    /// The response is a redirect.
    FragmentRedirected = "fragment-redirected", [Text], "", "";
    /// The status is not a success.
    FragmentStatus = "error", [Text], "", "";
}
