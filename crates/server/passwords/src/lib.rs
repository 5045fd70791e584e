//! Password files (htpasswd), and the checks of passwords against them.
//!
//! | file | contents |
//! |---|---|
//! | `file` | the users of a file, and its reload |
//! | `hash` | the kinds of hashes: bcrypt, argon2, SHA-crypt, apr1 |
//! | `basic` | the field `Authorization` (Basic, RFC 7617) |
//! | `queue` | checks: remembered, or by the hash on a bounded queue |
//!
//! Start reading at [`PasswordQueue::check`]. Invariants: no hash is computed on the thread of the caller; a password is
//! never stored, only an HMAC of it with a key of this process; the cost of a check does not tell whether a user exists.
//! Not here: which requests need a password (`site_rules`), responses (`exchange`), the clock (time is an argument).

mod basic;
mod file;
mod hash;
mod queue;

pub use basic::Credentials;
pub use file::{LookUnfinished, PasswordFile, PasswordFiles};
pub use queue::{PasswordOutcome, PasswordQueue, WrongPasswords};
