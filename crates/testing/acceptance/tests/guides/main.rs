//! The guides of the manual, followed as a reader follows them: the fenced blocks of `docs/guide/*.md` are read
//! from the files, and run in their order against real servers in a private directory.
//!
//! `guide` reads the blocks. Each block must be run, written to the file that the guide names, or compared with
//! the output of a command; a block that is none of these has a reason in the test (`not_run`). So a new block
//! in a guide fails the test until its use is decided. `machine` is the private machine, and has the one
//! translation between the guide's machine and this one. The tests run as root and as an ordinary user.

mod frameworks;
mod guide;
mod machine;
mod mediawiki;
mod nginx;
mod php;
mod wordpress;
