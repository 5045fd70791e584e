//! `pagewell nginx-config`: what to put into nginx where it stays in front and reads pages over the
//! memcached port.
//!
//! nginx looks under the request's URI as it came, which PHP has as `REQUEST_URI`. What is not stored, is no
//! GET, or comes with a session goes to PHP. Nothing is written anywhere and nothing is asked of nginx.

use crate::options::NginxConfigArgs;

/// The configuration for these addresses.
pub fn text(args: &NginxConfigArgs) -> String {
    let plain = |address: &str| address.trim_start_matches("tcp:").to_owned();
    TEMPLATE
        .replace("@MEMCACHED@", &plain(&args.memcached))
        .replace("@PHP@", &plain(&args.php))
        .replace("@ROOT@", &args.root.display().to_string())
        .replace("@LISTEN@", &args.listen)
        .replace("@SESSION@", &args.session_cookie)
}

const TEMPLATE: &str = r#"# Inside http { }: nginx in front, pages out of Pagewell's memcached port, PHP behind.

upstream pagewell_memcached {
    server @MEMCACHED@;
    keepalive 32;
}

server {
    listen @LISTEN@;
    root @ROOT@;

    location / {
        try_files $uri @cached;
    }

    # Scripts are run, never shown.
    location ~ \.php(/|$) {
        try_files /.none @cached;
    }

    location @cached {
        error_page 404 418 502 504 = @php;
        if ($request_method !~ ^(GET|HEAD)$) {
            return 418;
        }
        # Whoever has a session gets pages of his own.
        if ($cookie_@SESSION@) {
            return 418;
        }
        set $memcached_key $request_uri;
        default_type text/html;
        memcached_pass pagewell_memcached;
    }

    location @php {
        include /etc/nginx/fastcgi_params;
        fastcgi_param SCRIPT_FILENAME $document_root/index.php;
        fastcgi_param SCRIPT_NAME /index.php;
        fastcgi_pass @PHP@;
    }
}
"#;
