//! Connections of clients: accepting them, the PROXY protocol, TLS, HTTP/1.1 and HTTP/2, and the path of a plain cache
//! hit, which ends here.
//!
//! Start reading at [`hit`]: its opening has the table "what is a plain hit". Any other request goes to hyper, byte
//! for byte, and from there to `exchange`. Nothing here decides what may be cached.
//!
//! | subject | modules |
//! |---|---|
//! | a connection | `listen`, `proxy_protocol`, `tls`, `connection`, `deadline` |
//! | HTTP/1.1 in front of hyper | `front`, `request_head` (strict validation) |
//! | a plain hit | `hit` |
//! | HTTP/2 | `http2` |

pub mod connection;
pub mod deadline;
pub mod front;
pub mod hit;
pub mod http2;
pub mod listen;
pub mod proxy_protocol;
pub mod request_head;
pub mod tls;
