//! The server in the process of the test, with many clients at once. One program, because each links the server.

mod flush;
mod private;
