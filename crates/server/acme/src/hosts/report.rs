//! The results of the manager, for listeners and operators: the certificates in use, the answers to challenges, and the
//! state of each host.
//!
//! Invariant: nothing waits here for the storage but the lookup of a challenge.

use super::{AcmeHosts, HostState, ManagedSource, locked};
use crate::schedule::HostStep;
use certificates::{
    Certificate, CertificateSource, CertificateStatus, ChallengeLookup, ManagedHosts, ManagedReport,
};
use std::sync::atomic::Ordering;

impl AcmeHosts {
    fn status(&self, host: &str, state: &HostState) -> CertificateStatus {
        let next_try_ms = match self.next_step(state) {
            HostStep::Wait(until_ms) => until_ms,
            HostStep::AskRenewalTime | HostStep::Order => self.clock.now().0,
        };
        CertificateStatus {
            name: host.to_owned(),
            issuer: state.bundle.as_ref().map(|bundle| bundle.issuer.clone()),
            begins_ms: state.bundle.as_ref().map(|bundle| bundle.lifetime.from_ms),
            ends_ms: state.bundle.as_ref().map(|bundle| bundle.lifetime.until_ms),
            next_try_ms: Some(next_try_ms),
            failure: state.record.failure(),
            file: None,
        }
    }
}

impl ManagedHosts for AcmeHosts {
    fn manages(&self, host: &str) -> bool {
        self.hosts().contains_key(host)
    }

    fn challenge<'a>(&'a self, host: &'a str) -> ChallengeLookup<'a> {
        Box::pin(async move {
            let challenge = self.hosts().get(host)?.challenge.clone();
            challenge.find(&self.storage, &self.challenge_reads, host).await
        })
    }

    fn report(&self) -> ManagedReport {
        let hosts = self.hosts();
        let certificates = hosts.iter().map(|(host, state)| self.status(host, state));
        let names = ["issued", "failed"].into_iter();
        let counts = names.zip(self.orders.each_ref().map(|count| count.load(Ordering::Relaxed)));
        let mut orders = [("", 0); 2];
        orders.iter_mut().zip(counts).for_each(|(order, count)| *order = count);
        let certificates = certificates.collect();
        drop(hosts);
        ManagedReport {
            certificates,
            skipped: locked(&self.skipped).clone(),
            orders,
            storage_error: self.errors.iter().find_map(|error| locked(error).clone()),
        }
    }
}

impl CertificateSource for ManagedSource {
    fn load_changed(&self) -> Result<Option<Vec<Certificate>>, String> {
        if !self.0.is_changed.swap(false, Ordering::AcqRel) {
            return Ok(None);
        }
        let hosts = self.0.hosts();
        let bundles = hosts.values().filter_map(|state| state.bundle.as_ref());
        Ok(Some(bundles.map(|bundle| bundle.certificate.clone()).collect()))
    }
}
