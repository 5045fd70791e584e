//! Connections of clients: accepting them, the PROXY protocol, TLS, HTTP/1.1 and HTTP/2, and the
//! path of a plain cache hit, which ends here.
//!
//! Start reading at [`hit`], whose opening defines plain hits in a table. Any other request goes to
//! hyper unchanged, and then to `exchange`. Caching decisions are not made here.
//!
//! | subject | modules |
//! |---|---|
//! | a connection | `listen`, `client_stream` (TCP or Unix, TLS or not), `proxy_protocol`, `connection`, `deadline` |
//! | HTTP/1.1 in front of hyper | `front`, `request_head` (strict validation) |
//! | a plain hit | `hit` |
//! | any other request | `serve_request`, for all versions of HTTP; `hyper_content` |
//! | HTTP/2 | `http2` |

pub mod client_stream;
pub mod connection;
pub mod deadline;
pub mod front;
pub mod hit;
pub mod http2;
mod hyper_content;
pub mod listen;
pub mod proxy_protocol;
pub mod request_head;
mod serve_request;
