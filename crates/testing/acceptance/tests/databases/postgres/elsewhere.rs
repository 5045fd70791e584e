//! PostgreSQL over TLS, with and without certificate verification.

use super::{Paper, RULES, TABLES, config_by, shows, stored};
use crate::certificates::{certificates, written};
use acceptance::until;
use harness::{PostgresOptions, PrivateDir};

/// The options of a server with TLS, which requires TLS on its port.
fn encrypted(certificate: Option<(String, String)>) -> (PostgresOptions, u16) {
    let port = harness::free_port().expect("a port");
    let hba = match certificate {
        Some(_) => {
            "hostssl all all 127.0.0.1/32 scram-sha-256\nhostnossl all all 127.0.0.1/32 reject\n"
        }
        None => "",
    };
    let (at, hba) = (Some(port), hba.into());
    (PostgresOptions { port: at, hba, certificate, ..PostgresOptions::default() }, port)
}

#[test]
fn certificates_are_verified_as_configured() {
    let dir = PrivateDir::temporary("tls").expect("a directory");
    let (ca, leaf, key) = certificates();
    let write = |name: &str, text: &str| written(&dir, name, text);
    let (ca, other) = (write("ca.pem", &ca), write("other.pem", &certificates().0));
    let (options, port) = encrypted(Some((leaf, key)));
    let paper = Paper::with(options, TABLES);
    let url =
        |host: &str, more: &str| format!("postgres://writer:secret@{host}:{port}/paper{more}");
    let refused = |url: String, part: &str| {
        let said = paper.refused_with(&config_by(&url, "manage = true", RULES));
        assert!(said.contains(part), "{url}: {said}");
    };
    // The server requires TLS; a certificate of an unknown CA, or of another host.
    refused(url("127.0.0.1", ""), "no encryption");
    refused(
        url("127.0.0.1", &format!("?ssl-mode=verify-ca&ssl-ca={other}")),
        "invalid peer certificate",
    );
    refused(
        url("localhost", &format!("?ssl-mode=verify-full&ssl-ca={other}")),
        "invalid peer certificate",
    );
    refused(url("127.0.0.1", &format!("?ssl-mode=verify-full&ssl-ca={ca}")), "not valid for name");
    refused(url("localhost", "?ssl-mode=verify-full&ssl-ca=/no/such.pem"), "/no/such.pem");
    for (round, (host, more)) in [
        ("127.0.0.1", "?ssl-mode=required".to_owned()),
        ("127.0.0.1", format!("?ssl-mode=verify-ca&ssl-ca={ca}")),
        ("localhost", format!("?sslmode=verify-full&sslrootcert={ca}")),
    ]
    .into_iter()
    .enumerate()
    {
        let pagewell = paper.site.serve(&config_by(&url(host, &more), "manage = true", RULES));
        stored(&pagewell, "/show.php?id=1");
        paper.sql(&format!("UPDATE news SET title = 'secret{round}' WHERE id = 1"));
        shows(&pagewell, "/show.php?id=1", &format!("title=secret{round}"));
        let over_tls = "SELECT count(*) FILTER (WHERE s.ssl) = count(*) AND count(*) > 1 \
             FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) \
             WHERE a.application_name = 'pagewell'";
        until("all connections use TLS", || {
            paper.database.sql(over_tls).expect("an answer").trim() == "t"
        });
    }
}

#[test]
fn a_connection_that_requires_tls_never_runs_without() {
    let (options, port) = encrypted(None);
    let paper = Paper::with(options, TABLES);
    let url = format!("postgres://writer:secret@localhost:{port}/paper");
    let said =
        paper.refused_with(&config_by(&format!("{url}?ssl-mode=required"), "manage = true", RULES));
    assert!(said.contains("does not speak TLS: ssl = on"), "{said}");
    let pagewell = paper.site.serve(&config_by(&url, "manage = true", RULES));
    stored(&pagewell, "/show.php?id=1");
}
