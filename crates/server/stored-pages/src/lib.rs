//! A stored page as the server sees it: what `http_cache` needs for its reuse, the bytes to send, and the
//! codings of its content.
//!
//! | file | contents |
//! |---|---|
//! | `page` | a stored page: facts, header sections, content, and the choice of a form |
//! | `content_encoding`, `content_decoding` | compressed content: made, and read |
//!
//! Invariant: a page never changes; another form of it is another page in its place. Not here: the store
//! (`page_store`), and whether a page may be used (`http_cache`).

pub mod content_decoding;
pub mod content_encoding;
pub mod page;
