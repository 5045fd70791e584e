//! `pagewell init` on small machines in temporary directories: what it recognises, what it writes, and what it
//! says about machines that are half installed.
//!
//! Each machine is a tree of files below a root of its own, so nothing of the real machine is read. Every file
//! that is written passes the parser of the configuration.

mod behind_nginx;
mod broken;
mod databases;
mod guides;
mod machines;
mod pools;
mod second_run;
mod second_site;
mod tree;
