//! The options of `pagewell import`: the kind of configuration, its files, and where the result is written.
//!
//! Not here: the translation (`import-rules`), and reading and writing files (`cli`).

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The options of `pagewell import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The server whose configuration is read.
    #[command(subcommand)]
    pub server: ImportCommand,
}

/// The servers whose configuration can be read.
#[derive(Subcommand, Debug)]
pub enum ImportCommand {
    /// Translate the configuration of nginx, with the files that it includes
    Nginx(ImportFiles),
    /// Translate .htaccess files, or a virtual host of Apache
    Htaccess(ImportFiles),
}

/// The files of an import, and where its results go.
#[derive(Args, Debug)]
pub struct ImportFiles {
    /// The files to read; their place below the document root counts for .htaccess
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The site with this host, if the files have several
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// The document root, if the files do not name it [default for .htaccess: the directory of the first file]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// The file to write; an existing one is not overwritten [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The file for the report by line [default: standard error]
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write the report as JSON
    #[arg(long)]
    pub json: bool,
}
