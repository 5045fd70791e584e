//! Follows a connection of the MySQL protocol that is relayed between an application and its database, and
//! reports the statements that pass, without I/O ([0089](../../../../docs/decisions/automatic-dependencies.md)).
//!
//! Start reading at [`Relay`]: bytes of each side in, bytes for the other side and [`RelayEvent`]s out. All
//! bytes pass unchanged, except two packets of the login. Invariants: no input causes a panic; memory is
//! bounded; what cannot be understood is an event ([`RelayEvent::Unknown`]) or ends the connection
//! ([`RelayRefused`]). Sources: "Connection Phase", "Command Phase" of the client/server protocol of MySQL and
//! MariaDB. Not here: sockets, time, what a statement reads.

mod frames;
mod login;
mod prepared;
mod refused;
mod relay;
mod session;
mod text;

pub use login::AccountCheck;
pub use refused::{IsGreeted, RelayRefused, error_packet};
pub use relay::{Relay, RelayEvent, TEXT_MAX};
pub use session::{SessionCharset, SessionMode};
