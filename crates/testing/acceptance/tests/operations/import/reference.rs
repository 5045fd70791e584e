//! nginx or Apache with the original configuration.

use acceptance::Site;
use harness::{OnPort, PrivateDir, apache, nginx};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Modules of Apache that the documents use.
const MODULES: [&str; 13] = [
    "rewrite",
    "headers",
    "expires",
    "proxy",
    "proxy_fcgi",
    "dir",
    "alias",
    "setenvif",
    "access_compat",
    "authn_core",
    "authz_host",
    "filter",
    "deflate",
];

/// A server with its original configuration.
pub struct Reference {
    server: OnPort,
    /// The file to import.
    pub file: PathBuf,
}

impl Reference {
    /// Starts the server of a document.
    pub fn start(document: &Path, site: &Site, socket: &Path) -> Reference {
        let root = site.root().display().to_string();
        let text = fs::read_to_string(document).expect("the document");
        let text = text.replace("@root@", &root).replace("@php@", &socket.display().to_string());
        let dir = PrivateDir::temporary("reference").expect("a directory");
        if document.extension().is_some_and(|end| end == "htaccess") {
            let file = site.file(".htaccess", &text);
            let directives = format!(
                "DocumentRoot {root}\nDirectoryIndex index.php index.html\nAllowEncodedSlashes NoDecode\n<Directory />\nAllowOverride None\n</Directory>\n<Directory {root}>\nAllowOverride All\nOptions FollowSymLinks\n\
                 Require all granted\n</Directory>\n<FilesMatch \\.php$>\nSetHandler \"proxy:unix:{}|fcgi://localhost\"\n</FilesMatch>\n",
                socket.display()
            );
            let conf = apache::ApacheConf { modules: MODULES.to_vec(), directives };
            return Reference { server: apache::start(dir, &conf).expect("Apache"), file };
        }
        let file = site.at("site.conf");
        fs::write(&file, &text).expect("a file");
        let (http, server) = text.split_once("\nserver {").expect("a server block");
        let server =
            server.trim_end().strip_suffix('}').expect("its end").replace("listen 80;", "");
        let conf = nginx::NginxConf { http: http.to_owned(), server, workers: 1 };
        Reference { server: nginx::start(dir, &conf).expect("nginx"), file }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }
}
