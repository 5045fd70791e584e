//! The hit path: it answers a GET or HEAD whose page is stored and fresh, before hyper: over HTTP/1.1 and 1.0, and over
//! HTTP/2 after its fields have been written as a header section of HTTP/1.1 (`http2::answers`).
//!
//! | file | step |
//! |---|---|
//! | `read.rs` | reads the header section in one pass |
//! | `access.rs` | compares the request with the rules, once for each page and configuration |
//! | `find.rs` | writes the cache key, takes the candidates from the store, asks [`lookup::choose`](delivery::lookup::choose) |
//! | `redirects.rs` | finds the redirect of a request that no page or file answers |
//! | `send.rs` | writes status line, header lines and content |
//!
//! A **plain hit** meets every condition of this table. All other requests are answered by hyper and `exchange`.
//!
//! | condition | checked by | otherwise |
//! |---|---|---|
//! | `hits_in_front` is on; the scheme is not redirected to HTTPS; no successor process has taken over | `connection.rs`, `http2/answers.rs`, when a connection begins | hyper answers all requests of the connection |
//! | hyper has no request of this connection in progress, and nothing to write | `front.rs` `poll_head` | the request waits |
//! | it is not the last request of the connection (`limits.connection_requests`) | `front.rs` `inspect` | hyper, whose response ends the connection |
//! | the configuration is the current one | `find.rs` `find` | the current one is used from then on, unless the process is being replaced |
//! | GET or HEAD, HTTP/1.1 or 1.0, a target in origin form, a complete header section within the limits, every line unambiguous | `read.rs` `read` | `request_head.rs` waits for more bytes, refuses the request, or hands it to hyper |
//! | one `Host`; no `Expect`, `Upgrade`, `Content-Length`, `Transfer-Encoding`; no field that bypasses the cache; `Connection` says `keep-alive` or `close`; it is no LiteSpeed crawler | `read.rs` `read_lines` | hyper |
//! | a trusted proxy names the scheme in one word, which is not redirected to HTTPS, and sends no `traceparent` while traces are exported | `read.rs` `read_lines` | hyper |
//! | the host is a name, its port is written as in a key, and the target has no fragment | `find.rs` `write_plain_origin`, `write_plain_path` | hyper; an invalid host is a 400 |
//! | the target is in its normal form, and the host is the canonical one | `find.rs` `is_plain_for` | `exchange` normalises it |
//! | the rules let the request use shared pages | `find.rs` `plan` | `exchange` bypasses the cache, or looks for a private copy |
//! | a page is stored under this key | `find.rs` `page` | a file that was found there within the last second, under the same configuration (`find.rs` `file`), or a redirect (`redirects.rs`); else `exchange` |
//! | the page is fresh, and allowed for this client | `lookup::choose` | `exchange`: stale, validated, rendered, or 504 |
//! | the answer is the whole page or a 304, in a form that is laid out with the page | [`page::select`](stored_pages::page::select) | `serve.rs` makes the answer: 206, 412, 416, ESI |
//! | no rule refuses or redirects the request of any client; compared once for each page and configuration | `access.rs` `is_free` | `exchange` refuses it, or answers |
//! | with `Authorization`: nothing but a password is needed, the same for all clients, and it was checked within five minutes | `access.rs` `has_password` | `exchange` checks it, or bypasses the cache |
//! | the content fits the client's window and 128 KiB (HTTP/2 only) | `find.rs` `form` | hyper sends it piece by piece |
//!
//! A redirect, which needs none of the conditions on target and page, is sent in the same way if nothing but URL, method
//! and client decide on it (`exchange::PlainAsked`).
//!
//! Invariants: a plain hit allocates nothing, unless the audit compares it (`find.rs` `audit`), and takes one lock, that of the page's shard, for
//! reading; behind a password also those of the file's users and of the remembered passwords. It is answered in the same way as by `exchange` (`tests/differential.rs`).

mod access;
pub mod find;
pub mod read;
mod redirects;
pub mod send;

pub use find::HitFinder;
pub use send::Hit;
