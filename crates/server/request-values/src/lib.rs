//! Values of a request that every part of the server reads alike: its target, and what is believed of its sender.
//!
//! | module | contents |
//! |---|---|
//! | `target` | the target URI, the cache key, references in a page |
//! | `hosts` | the hosts of a site |
//! | `networks` | trusted proxies, and the client's address and scheme behind them |
//! | `steering_fields` | fields that a client may not set |
//!
//! The crate is pure: no input or output, no clock, no state. Not here: how hosts and networks are configured
//! (`config`), the header section's syntax (`front`), and the conditions of rules (`rule_conditions`).

pub mod hosts;
pub mod networks;
pub mod steering_fields;
pub mod target;
