//! FastCGI 1.0 between a web server and a responder (php-fpm, fcgiwrap, any program), without I/O: bytes in,
//! typed events out, and the reverse. The owner of the socket calls this crate.
//!
//! A connection carries one request at a time, always with request id 1 (php-fpm answers `FCGI_MPXS_CONNS` with
//! 0). No whole record, content or request is held in memory. Params and the head of a response must be held;
//! both are bounded, and every refusal has a name.
//!
//! Sources: the FastCGI Specification 1.0 (29 April 1996), cited as "FastCGI §…"; CGI/1.1, RFC 3875. Not here:
//! sockets, pools, timeouts, logging, routing; roles other than the responder.

pub mod cgi_head;
pub mod cgi_params;
pub mod completeness;
pub mod end_request;
pub mod pairs;
pub mod params;
pub mod peer;
pub mod php_fatal;
pub mod record;
pub mod response;
pub mod stdin;

pub use cgi_head::{
    CgiHead, CgiHeadReader, HeadLimits, HeadRefusal, HeadRefused, HeadStep, ResponseKind,
};
pub use cgi_params::{CgiRequest, Scheme, Script, ServerPlace, cgi_params};
pub use completeness::{
    CloseReason, Completeness, ContentFraming, IncompleteReason, Reuse, StdinSent,
};
pub use end_request::{EndRequest, ProtocolStatus};
pub use params::{AfterRequest, BEGIN_KEPT_OPEN, Params, ParamsLimits, ParamsRefused};
pub use php_fatal::{PhpFatal, PhpFatalWatch};
pub use response::{Event, ProtocolError, ResponseReader};
pub use stdin::{ABORT_REQUEST, STDIN_CHUNK_MAX, STDIN_END, split_stdin, stdin_header};
