//! Automatic HTTPS: connects the manager of certificates (`acme`) with the listeners, the sites and the phases of the
//! process.
//!
//! Invariant: a start waits for stored certificates for a few seconds at most, and never for a certificate authority.
//! Without a certificate, TLS handshakes for a host fail, and its plain listener serves it.

use acme::{AcmeHosts, AcmeParts, ChallengeKind, ManagedSource};
use certificates::Certificates;
use config::Config;
use delivery::site::Site;
use std::sync::Arc;
use telemetry::phase::PhaseWatch;

/// A manager that is ready to run.
pub struct AutomaticHttps(Arc<AcmeHosts>, AcmeParts);

impl AutomaticHttps {
    /// Gives the certificates to the sites. With `[acme]`, reads the stored certificates before connections are
    /// accepted.
    pub async fn begin(
        site: &Arc<Site>,
        tls: Option<&Arc<Certificates>>,
    ) -> Option<AutomaticHttps> {
        let tls = tls?;
        for site in site.all_sites() {
            // It is set once, at the start.
            let _ = site.certificates.set(tls.clone());
        }
        let config = &site.config;
        let acme = config.acme.as_ref()?;
        let manager = AcmeHosts::new(acme, kinds(config), &site.clock);
        tls.add_source(Box::new(ManagedSource(manager.clone())));
        tls.set_managed(manager.clone());
        let (of_hosts, of_look) = (site.clone(), site.clone());
        let parts = AcmeParts {
            certificates: tls.clone(),
            hosts: Box::new(move || hosts(&of_hosts.now())),
            look: Box::new(move || of_look.now().limits.certificate_look),
        };
        manager.begin(&parts).await;
        Some(AutomaticHttps(manager, parts))
    }

    /// Obtains and renews certificates until the process leaves.
    pub fn run(self, stopped: &PhaseWatch) {
        let AutomaticHttps(manager, parts) = self;
        tokio::spawn(manager.run(parts, stopped.clone()));
    }
}

/// The kinds of challenges that the listeners can answer.
fn kinds(config: &Config) -> Vec<ChallengeKind> {
    let plain = (!config.listen.is_empty()).then_some(ChallengeKind::Http01);
    let tls = (!config.listen_tls.is_empty()).then_some(ChallengeKind::TlsAlpn01);
    plain.into_iter().chain(tls).collect()
}

/// The hosts of all sites.
fn hosts(site: &Arc<Site>) -> Vec<String> {
    let hosts =
        site.all_sites().flat_map(|site| site.config.hosts.all().cloned().collect::<Vec<_>>());
    hosts.collect()
}
